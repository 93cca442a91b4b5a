// A text whose bytes remember the bytes of the original text that they come from, as the
// NormalizedString of Hugging Face's tokenizers does. Offsets of tokens come from it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fleet::text {

// Bytes [begin, end) of a text.
struct TextRange {
  uint32_t begin = 0, end = 0;
  friend bool operator==(const TextRange&, const TextRange&) = default;
};

// One character of a changed text. change: 1: it is new; 0: it stands for one character of the
// text before; -n: for one, and the n characters after that are gone.
struct CharacterChange {
  char32_t code_point;
  int32_t change;
};

// A part of an AlignedText, which must outlive it.
struct AlignedView {
  std::string_view text;
  const TextRange* from = nullptr;  // each byte's place in the text

  AlignedView part(size_t begin, size_t count) const {
    return {text.substr(begin, count), from + begin};
  }
};

// UTF-8 that is valid. All bytes of a character have the same range.
class AlignedText {
 public:
  AlignedText() = default;
  // Bytes that are not UTF-8 become U+FFFD, whose range is those bytes. At most 4 GiB.
  explicit AlignedText(std::string_view original);
  explicit AlignedText(AlignedView part)
      : text_(part.text), from_(part.from, part.from + part.text.size()) {}

  const std::string& text() const { return text_; }
  AlignedView view() const { return {text_, from_.data()}; }

  // The text is what `changes` say, in the order of the text.
  void apply(std::span<const CharacterChange> changes);
  // Every character becomes some characters, all with its range.
  using Spell = std::function<void(char32_t code_point, std::string& out)>;
  void spell(const Spell& spell);
  // Appends `between` as it is, then `content` with the range.
  void append_replaced(AlignedView between, std::string_view content, TextRange range);
  // Puts `prefix` before the text, with the range of the first character. Not for an empty text.
  void prepend(std::string_view prefix);

 private:
  void append(std::string_view bytes, TextRange range);

  std::string text_;
  std::vector<TextRange> from_;
};

}  // namespace fleet::text
