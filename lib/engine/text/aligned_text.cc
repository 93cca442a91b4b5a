#include "text/aligned_text.h"

#include <algorithm>
#include <utility>

#include "text/utf8.h"

namespace fleet::text {

AlignedText::AlignedText(std::string_view original) {
  text_.reserve(original.size());
  from_.reserve(original.size());
  for (size_t at = 0; at < original.size();) {
    size_t bad;
    size_t length = valid_character(original, at, &bad);
    const bool valid = length > 0;
    if (!valid) length = bad;
    const TextRange range{static_cast<uint32_t>(at), static_cast<uint32_t>(at + length)};
    append(valid ? original.substr(at, length) : "\xEF\xBF\xBD", range);
    at += length;
  }
}

void AlignedText::append(std::string_view bytes, TextRange range) {
  text_ += bytes;
  from_.insert(from_.end(), bytes.size(), range);
}

// transform_range() in tokenizers/src/tokenizer/normalizer.rs of Hugging Face's tokenizers.
void AlignedText::apply(std::span<const CharacterChange> changes) {
  const AlignedText before = std::exchange(*this, AlignedText());
  size_t at = 0;
  const auto skip = [&] {
    if (at < before.text_.size()) code_point_at(before.text_, at, &at);
  };
  std::string bytes;
  for (const auto& [code_point, change] : changes) {
    // A new character has the range of the one before it.
    const size_t like = change > 0 ? at - std::min<size_t>(at, 1) : at;
    const TextRange range =
        before.from_.empty() ? TextRange{} : before.from_[std::min(like, before.from_.size() - 1)];
    for (int32_t i = change; i <= 0; ++i) skip();
    bytes.clear();
    append_utf8(code_point, bytes);
    append(bytes, range);
  }
}

void AlignedText::spell(const Spell& spell) {
  const AlignedText before = std::exchange(*this, AlignedText());
  std::string bytes;
  for (size_t at = 0; at < before.text_.size();) {
    const TextRange range = before.from_[at];
    bytes.clear();
    spell(code_point_at(before.text_, at, &at), bytes);
    append(bytes, range);
  }
}

void AlignedText::append_replaced(AlignedView between, std::string_view content, TextRange range) {
  text_ += between.text;
  from_.insert(from_.end(), between.from, between.from + between.text.size());
  append(content, range);
}

void AlignedText::prepend(std::string_view prefix) {
  text_.insert(0, prefix);
  from_.insert(from_.begin(), prefix.size(), from_.front());
}

}  // namespace fleet::text
