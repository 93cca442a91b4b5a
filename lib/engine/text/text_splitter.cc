#include "text/text_splitter.h"

#include "text/normalizer.h"
#include "text/pre_tokenizer.h"
#include "text/utf8.h"

namespace fleet::text {

struct TextSplitter::Parts {
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
};

TextSplitter::TextSplitter(const Json& normalizer, const Json& pre_tokenizer,
                           const std::string& where)
    : parts_(new Parts{Normalizer(normalizer, where), PreTokenizer(pre_tokenizer, where)}) {}
TextSplitter::TextSplitter(TextSplitter&&) noexcept = default;
TextSplitter& TextSplitter::operator=(TextSplitter&&) noexcept = default;
TextSplitter::~TextSplitter() = default;

bool TextSplitter::byte_level() const { return parts_->pre_tokenizer.byte_level(); }
bool TextSplitter::normalizes() const { return !parts_->normalizer.empty(); }

std::string TextSplitter::normalize(std::string_view text) const {
  return parts_->normalizer.apply(text);
}

bool TextSplitter::begins_input(std::string_view text) const {
  if (text.empty() || !normalizes() || !parts_->pre_tokenizer.uses_first()) return true;
  size_t next;
  code_point_at(text, 0, &next);
  return !normalize(text.substr(0, next)).empty();
}

void TextSplitter::split(std::string_view normalized, const Piece& piece, bool first) const {
  parts_->pre_tokenizer.split(normalized, first, piece);
}

void TextSplitter::normalize(AlignedText& text) const { parts_->normalizer.apply(text); }

void TextSplitter::split(AlignedView normalized, const AlignedPiece& piece, bool first) const {
  parts_->pre_tokenizer.split(normalized, first, piece);
}

void TextSplitter::pieces(std::string_view text, const Piece& piece) const {
  if (normalizes()) {
    split(normalize(text), piece, begins_input(text));
  } else {
    split(text, piece);
  }
}

}  // namespace fleet::text
