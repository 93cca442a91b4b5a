#include "backend/cpu/attention_memory.h"

namespace fleet::cpu {

DocumentRanges::DocumentRanges(const Attention& attention, AttentionParts& parts)
    : stride_(attention.tokens + 64),
      attention_(attention),
      first_(nullptr),
      last_(nullptr),
      next_(nullptr),
      scattered_(nullptr) {
  if (!attention.documents) return;
  first_ = parts.take<int32_t>(attention.batch * stride_);
  last_ = parts.take<int32_t>(attention.batch * stride_);
  next_ = parts.take<int32_t>(attention.batch * stride_);
  scattered_ = parts.take<int32_t>(attention.batch);
}

void DocumentRanges::find(int64_t sample) {
  if (!first_) return;
  const auto tokens = static_cast<int32_t>(attention_.tokens);
  const int64_t* ids = attention_.documents + sample * tokens;
  int32_t *first = first_ + sample * stride_, *last = last_ + sample * stride_;
  int32_t* next = next_ + sample * stride_;  // end of a run of one document, at its first token
  bool scattered = false;
  for (int32_t begin = 0, end; begin < tokens; begin = end) {
    for (end = begin + 1; end < tokens && ids[end] == ids[begin];) ++end;
    int32_t same = 0;
    while (same < begin && ids[same] != ids[begin]) same = next[same];
    scattered = scattered || same < begin;
    next[begin] = end;
    std::fill(first + begin, first + end, same);
    last[same] = end;  // grows with each run of the document
  }
  for (int32_t token = tokens - 1; token >= 0; --token) last[token] = last[first[token]];
  std::fill(first + tokens, first + stride_, -1);
  scattered_[sample] = scattered;
}

Visibility DocumentRanges::of(int64_t sample) const {
  return {.tokens = attention_.tokens,
          .window = attention_.window,
          .causal = attention_.causal,
          .first = first_ ? first_ + sample * stride_ : nullptr,
          .last = first_ ? last_ + sample * stride_ : nullptr,
          .scattered = first_ && scattered_[sample] != 0};
}

}  // namespace fleet::cpu
