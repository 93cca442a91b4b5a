#include "text/text_cutter.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace fleet::text {
namespace {

constexpr size_t kMostTries = 64;       // line starts that are tried in a slot
constexpr size_t kContextBytes = 1024;  // text on each side that is encoded to try one

// Whether a byte is part of a visible character, or of one beyond ASCII.
bool is_visible(char c) { return static_cast<unsigned char>(c) > ' ' && c != 0x7f; }

bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

}  // namespace

bool TextCutter::is_safe(size_t at) const {
  size_t begin = std::max(first_, at > kContextBytes ? at - kContextBytes : 0);
  const size_t line = text_.rfind('\n', at - 2);
  if (line != std::string_view::npos && line + 1 > begin) begin = line + 1;
  size_t end = std::min(text_.size(), at + kContextBytes);
  while (begin < at && continues_character(text_[begin])) ++begin;
  while (end < text_.size() && continues_character(text_[end])) ++end;
  std::vector<uint32_t> whole, parts;
  tokenizer_.encode_ordinary(text_.substr(begin, end - begin), whole);
  tokenizer_.encode_ordinary(text_.substr(begin, at - begin), parts);
  tokenizer_.encode_ordinary(text_.substr(at, end - at), parts);
  return whole == parts;
}

std::optional<size_t> TextCutter::cut(size_t slot) const {
  if (slot == 0) return first_;
  const size_t end = std::min(text_.size(), (slot + 1) * slot_bytes_);
  size_t from = slot * slot_bytes_;
  for (size_t tries = 0; tries < kMostTries;) {
    const size_t found = text_.find('\n', from - 1);
    if (found == std::string_view::npos || found + 1 >= end) return std::nullopt;
    const size_t at = found + 1;
    from = at + 1;
    // A piece of white space is split differently where its end is not seen, so the line end must
    // stand alone.
    if (at - 1 <= first_ || !is_visible(text_[at - 2]) || !is_visible(text_[at])) continue;
    if (is_safe(at)) return at;
    ++tries;
  }
  return std::nullopt;
}

size_t TextCutter::next_cut(size_t slot) const {
  for (; slot < slots(); ++slot) {
    if (const std::optional<size_t> at = cut(slot)) return *at;
  }
  return text_.size();
}

}  // namespace fleet::text
