// Rules of the operation `attention` for every backend: which keys a query sees, and its dropout.
#pragma once

#include <cstdint>

#include "graph/program.h"
#include "ops/dropout_mask.h"

namespace fleet {

// Element (head, query, key) of a sample's sequence of dropout_bits(). It does not depend on the
// length, so that a longer batch keeps the mask of a sample.
constexpr uint64_t attention_element(int64_t head, int64_t query, int64_t key) {
  return static_cast<uint64_t>(head) << 42 | static_cast<uint64_t>(query) << 21 |
         static_cast<uint64_t>(key);
}
inline constexpr int64_t kMostAttentionTokens = int64_t{1} << 21;

// The sizes of an attention from its arguments.
struct AttentionSizes {
  int64_t batch, tokens, heads, kv_heads, size;
  bool packed;  // q holds the heads of q, k and v
  int64_t q_stride() const { return (packed ? heads + 2 * kv_heads : heads) * size; }
  int64_t kv_stride() const { return packed ? q_stride() : kv_heads * size; }
  // Elements from a token of a packed q to its heads of k and of v.
  int64_t k_offset() const { return heads * size; }
  int64_t v_offset() const { return (heads + kv_heads) * size; }
};
// k: null if q is packed. The shapes must be those that the operation accepts.
AttentionSizes attention_sizes(const Attributes& attributes, const Shape& q, const Shape* k);

// The other attributes, as kernels compute with them.
struct AttentionSettings {
  bool causal = false;
  int64_t window = 0;                     // 0: none
  float scale = 1;                        // 1 / sqrt(size) where the attribute is 0
  uint64_t drop_threshold = 0, salt = 0;  // see dropout_bits(); threshold 0: none
  float keep_scale = 1;                   // factor of the probabilities that dropout keeps
};
AttentionSettings attention_settings(const Attributes& attributes, int64_t size);

}  // namespace fleet
