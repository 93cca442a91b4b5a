// Cuts a long text where its tokens do not change, so that threads can encode the pieces.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "text/tokenizer.h"

namespace fleet::text {

// The text is divided into slots of equal length. Each has at most one cut: the first line start in
// it where the text around has the tokens of its two sides. Pieces lie between cuts, so
// they depend only on the text, the tokenizer and the slots, and their tokens on the first two.
// Immutable: thread-safe.
class TextCutter {
 public:
  // first: where the text begins, behind a mark of UTF-8. The referents must live.
  TextCutter(const Tokenizer& tokenizer, std::string_view text, size_t first, size_t slot_bytes)
      : tokenizer_(tokenizer), text_(text), first_(first), slot_bytes_(slot_bytes) {}

  size_t slots() const { return (text_.size() + slot_bytes_ - 1) / slot_bytes_; }
  // The cut of this slot; nullopt if it has none. Slot 0 has its cut at the text's beginning.
  std::optional<size_t> cut(size_t slot) const;
  // The first cut of this slot or a later one; the end of the text if none is left.
  size_t next_cut(size_t slot) const;

 private:
  bool is_safe(size_t at) const;

  const Tokenizer& tokenizer_;
  const std::string_view text_;
  const size_t first_, slot_bytes_;
};

}  // namespace fleet::text
