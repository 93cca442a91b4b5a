// Attention on CUDA cores, in float whatever the elements are: tiles of rows in shared memory, a
// running maximum and sum of each row (Dao et al., FlashAttention, 2022). For .cu files.
#pragma once

#include "backend/cuda/types.h"
#include "exec/kernel.h"
#include "ops/attention.h"

namespace fleet::cuda {

inline constexpr int kAttentionWarps = 4;
inline constexpr int kAttentionThreads = kAttentionWarps * kWarp;
inline constexpr int kAttentionTile = kWarp;  // rows of the other side in shared memory: one a lane

// One call. Tokens of q are q_stride elements apart, those of k and v kv_stride; y and dy are
// [batch, tokens, heads, size].
template <typename T>
struct AttentionCall {
  int64_t batch, tokens, heads, kv_heads, size, q_stride, kv_stride;
  bool causal;
  int64_t window;
  float scale;
  uint64_t drop_threshold, salt;
  float keep_scale;
  const T *q, *k, *v;
  const int64_t *documents, *sample_keys;  // null: none

  __device__ int64_t group() const { return heads / kv_heads; }
  __device__ bool sees(int64_t sample, int64_t query, int64_t key) const {
    if (causal && key > query) return false;
    if (window && key <= query - window) return false;
    const int64_t* ids = documents + sample * tokens;
    return !documents || ids[query] == ids[key];
  }
  __device__ uint64_t stream(int64_t sample) const {
    return drop_threshold ? dropout_stream(static_cast<uint64_t>(sample_keys[sample]), salt) : 0;
  }
  // Factor of a probability: 0 or 1 / (1 - p).
  __device__ float drop_factor(uint64_t stream, int64_t head, int64_t query, int64_t key) const {
    if (!drop_threshold) return 1;
    return dropout_bits(stream, attention_element(head, query, key)) >= drop_threshold ? keep_scale
                                                                                       : 0;
  }
  // The tiles that rows [begin, end) see: keys of queries, or queries of keys.
  __device__ int64_t first_key(int64_t begin) const {
    return window && begin >= window ? (begin - window + 1) / kAttentionTile * kAttentionTile : 0;
  }
  __device__ int64_t last_key(int64_t end) const { return causal && end < tokens ? end : tokens; }
  __device__ int64_t first_query(int64_t begin) const {
    return causal ? begin / kAttentionTile * kAttentionTile : 0;
  }
  __device__ int64_t last_query(int64_t end) const {
    return window && end - 1 + window < tokens ? end - 1 + window : tokens;
  }
};

// Copies rows [first, first + count) of `size` elements into shared memory as float, with 0 for
// rows from `tokens` on. All threads of the block must call it.
template <typename T>
__device__ void load_rows(const T* from, int64_t stride, int64_t first, int count, int64_t tokens,
                          int size, int to_stride, float* to) {
  for (int i = static_cast<int>(threadIdx.x); i < count * size; i += kAttentionThreads) {
    const int row = i / size, column = i - row * size;
    const bool exists = first + row < tokens;
    to[row * to_stride + column] = exists ? to_float(from[(first + row) * stride + column]) : 0.0f;
  }
}

// sums[r] = row r of `own` (size apart) times row `lane` of the tile.
template <int rows>
__device__ void multiply_rows(const float* own, const float* tile_row, int size,
                              float (&sums)[rows]) {
#pragma unroll
  for (int r = 0; r < rows; ++r) sums[r] = 0;
  for (int d = 0; d < size; ++d) {
    const float other = tile_row[d];
#pragma unroll
    for (int r = 0; r < rows; ++r) sums[r] += own[r * size + d] * other;
  }
}

// sums[r][i] += weights[r][row] tile[row][lane + 32 i] over the tile's rows.
template <int rows, int columns>
__device__ void add_weighted(const float* weights, const float* tile, int tile_stride, int size,
                             float (&sums)[rows][columns]) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  for (int row = 0; row < kAttentionTile; ++row) {
#pragma unroll
    for (int i = 0; i < columns; ++i) {
      const int column = lane + kWarp * i;
      if (column >= size) break;
      const float value = tile[row * tile_stride + column];
#pragma unroll
      for (int r = 0; r < rows; ++r) sums[r][i] += weights[r * kAttentionTile + row] * value;
    }
  }
}

// The call from a kernel's arguments. kUnsupported for heads of more than 256 elements.
template <typename T>
AttentionCall<T> attention_call(const KernelContext& context) {
  const Argument &q = context.inputs[0], &k = context.inputs[1];
  const Attributes& attributes = context.attributes();
  const AttentionSizes sizes = attention_sizes(attributes, q.shape, k ? &k.shape : nullptr);
  if (sizes.size > 256) {
    throw Error(ErrorCode::kUnsupported, "attention: heads of " + std::to_string(sizes.size) +
                                             " elements, more than 256, have no cuda kernel");
  }
  const double p = attributes.number("dropout");
  const T* packed = q.as<const T>();
  return {.batch = sizes.batch,
          .tokens = sizes.tokens,
          .heads = sizes.heads,
          .kv_heads = sizes.kv_heads,
          .size = sizes.size,
          .q_stride = sizes.q_stride(),
          .kv_stride = sizes.kv_stride(),
          .causal = attributes.boolean("causal"),
          .window = attributes.integer("window"),
          .scale = static_cast<float>(attention_scale(attributes, sizes.size)),
          .drop_threshold = dropout_threshold(p),
          .salt = static_cast<uint64_t>(attributes.integer("salt")),
          .keep_scale = static_cast<float>(1 / (1 - p)),
          .q = packed,
          .k = k ? k.as<const T>() : packed + sizes.heads * sizes.size,
          .v = k ? context.inputs[2].as<const T>()
                 : packed + (sizes.heads + sizes.kv_heads) * sizes.size,
          .documents = context.inputs[3].as<const int64_t>(),
          .sample_keys = context.inputs[4].as<const int64_t>()};
}

}  // namespace fleet::cuda
