// Memory of attention's loops, and which keys a query sees.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "backend/cpu/attention.h"
#include "backend/cpu/thread_scratch.h"

namespace fleet::cpu {

// Hands out parts of a block, each on its own cache lines.
class AttentionParts {
 public:
  // begin: null to only count.
  explicit AttentionParts(void* begin) : at_(static_cast<std::byte*>(begin)) {}
  template <typename T>
  T* take(int64_t count) {
    T* part = at_ ? reinterpret_cast<T*>(at_ + bytes_) : nullptr;
    bytes_ += (count * static_cast<int64_t>(sizeof(T)) + 63) / 64 * 64;
    return part;
  }
  int64_t bytes() const { return bytes_; }

 private:
  std::byte* at_;
  int64_t bytes_ = 0;
};

// Tokens [begin, end).
struct TokenRange {
  int64_t begin, end;
  bool empty() const { return begin >= end; }
};

// Which tokens see each other, in one sample. The tokens of a document need not be neighbours.
struct Visibility {
  int64_t tokens, window;
  bool causal;
  // By token: the first token of its document, and the last + 1. Null: one document.
  const int32_t *first, *last;
  bool scattered;  // a document has gaps: inside its range compare `first`

  // The keys that a query sees, and the queries that see a key.
  TokenRange keys_of(int64_t query) const {
    TokenRange range = document(query);
    if (causal) range.end = std::min(range.end, query + 1);
    if (window) range.begin = std::max(range.begin, query - window + 1);
    return range;
  }
  TokenRange queries_of(int64_t key) const {
    TokenRange range = document(key);
    if (causal) range.begin = std::max(range.begin, key);
    if (window) range.end = std::min(range.end, key + window);
    return range;
  }

 private:
  TokenRange document(int64_t token) const {
    return first ? TokenRange{first[token], last[token]} : TokenRange{0, tokens};
  }
};

// The documents of all samples as ranges. Memory is of document_bytes().
class DocumentRanges {
 public:
  DocumentRanges(const Attention& attention, AttentionParts& parts);
  void find(int64_t sample);  // to be called for each sample first; any threads
  Visibility of(int64_t sample) const;

 private:
  int64_t stride_;  // tokens with padding that vectors may read
  const Attention& attention_;
  int32_t *first_, *last_, *next_, *scattered_;
};

}  // namespace fleet::cpu
