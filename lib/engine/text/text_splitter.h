// The first half of a tokenizer: normalizes a text and splits it into the pieces that the model
// encodes one by one. Training counts the same pieces.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/json.h"
#include "text/aligned_text.h"

namespace fleet::text {

// All const member functions may be called by several threads at once.
class TextSplitter {
 public:
  // The sections "normalizer" and "pre_tokenizer" of a tokenizer.json; null: none. kUnsupported for
  // types that are not known, kUsage for wrong members. where: what messages call the file.
  TextSplitter(const Json& normalizer, const Json& pre_tokenizer, const std::string& where);
  TextSplitter(TextSplitter&&) noexcept;
  TextSplitter& operator=(TextSplitter&&) noexcept;
  ~TextSplitter();

  // Whether pieces are bytes that a vocabulary writes as byte_level_text(). Else they are UTF-8.
  bool byte_level() const;

  // The text after the normalizer. Valid UTF-8 in, valid UTF-8 out.
  std::string normalize(std::string_view text) const;
  // Whether the start of the normalized text is the start of this one: false if normalize() drops
  // the first character, and a pre-tokenizer asks.
  bool begins_input(std::string_view text) const;
  // false: normalize() changes nothing in any text.
  bool normalizes() const;

  // Splits a text that is normalized. Views point into `text`, or live as long as the call.
  // first: whether it begins the input and begins_input() was true of it; some add a space only
  // there.
  using Piece = std::function<void(std::string_view piece)>;
  void split(std::string_view normalized, const Piece& piece, bool first = true) const;
  // Likewise for a text that remembers its source.
  using AlignedPiece = std::function<void(AlignedView piece)>;
  void normalize(AlignedText& text) const;
  void split(AlignedView normalized, const AlignedPiece& piece, bool first) const;
  // normalize() and split().
  void pieces(std::string_view text, const Piece& piece) const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

// The printable form of bytes in byte-level vocabularies (GPT-2's bytes_to_unicode): "Ġ" for a
// space.
std::string byte_level_text(std::string_view bytes);
// The code point of one byte in that form.
char32_t byte_level_code_point(unsigned char byte);
// false: `text` has a character that is not in that alphabet.
bool byte_level_bytes(std::string_view text, std::string& bytes);

}  // namespace fleet::text
