// Attention in tiles of rows in shared memory, with a running maximum and sum of each row (Dao et
// al., FlashAttention, 2022). Here: what all of its kernels share, and those on CUDA cores, in
// float whatever the elements are. attention_tiles.h: those on tensor cores. Tiles of which no
// query sees a key are skipped. For .cu files.
#pragma once

#include "backend/cuda/types.h"
#include "exec/kernel.h"
#include "ops/attention.h"

namespace fleet::cuda {

inline constexpr int kAttentionWarps = 4;
inline constexpr int kAttentionThreads = kAttentionWarps * kWarp;
inline constexpr int kAttentionTile = kWarp;  // rows of the other side in shared memory: one a lane

// The lowest and the highest document id of some tokens.
struct IdRange {
  int64_t low, high;
  __device__ bool overlaps(const IdRange& other) const {
    return low <= other.high && other.low <= high;
  }
  __device__ bool equals_all(const IdRange& other) const {
    return low == high && other.low == low && other.high == low;
  }
};

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
  __device__ int64_t first_key(int64_t begin, int tile) const {
    return window && begin >= window ? (begin - window + 1) / tile * tile : 0;
  }
  __device__ int64_t last_key(int64_t end) const { return causal && end < tokens ? end : tokens; }
  __device__ int64_t first_query(int64_t begin, int tile) const {
    return causal ? begin / tile * tile : 0;
  }
  __device__ int64_t last_query(int64_t end) const {
    return window && end - 1 + window < tokens ? end - 1 + window : tokens;
  }
  // The document ids of tokens [first, first + count). All lanes of a warp must call it.
  __device__ IdRange ids_of(int64_t sample, int64_t first, int count) const {
    if (!documents) return {0, 0};
    const int64_t* ids = documents + sample * tokens;
    IdRange range{ids[first], ids[first]};
    for (int i = static_cast<int>(threadIdx.x) % kWarp; i < count; i += kWarp) {
      if (first + i >= tokens) break;
      const int64_t id = ids[first + i];
      if (id < range.low) range.low = id;
      if (id > range.high) range.high = id;
    }
#pragma unroll
    for (int distance = kWarp / 2; distance > 0; distance /= 2) {
      const int64_t low = shuffle_xor(range.low, distance);
      const int64_t high = shuffle_xor(range.high, distance);
      if (low < range.low) range.low = low;
      if (high > range.high) range.high = high;
    }
    return range;
  }
  // Whether each of `queries` queries from `query` on sees each of `keys` keys, documents apart.
  __device__ bool sees_all(int64_t query, int queries, int64_t key, int keys) const {
    if (query + queries > tokens || key + keys > tokens) return false;
    if (causal && key + keys - 1 > query) return false;
    return !window || key > query + queries - 1 - window;
  }
};

// One call of the gradient.
template <typename T>
struct GradientCall {
  AttentionCall<T> a;
  const T* dy;
  const float *lse, *delta;
  T *dq, *dk, *dv;  // with the strides of q, k and v; null: not wanted
};

// The rows of one side of one head.
template <typename T>
struct Side {
  const T *scored, *sloped;  // q and dy, or k and v
  int64_t scored_stride, sloped_stride;
};

template <typename T>
__device__ Side<T> queries_of(const GradientCall<T>& g, int64_t sample, int64_t head) {
  const AttentionCall<T>& a = g.a;
  const int64_t token = sample * a.tokens;
  return {a.q + token * a.q_stride + head * a.size, g.dy + (token * a.heads + head) * a.size,
          a.q_stride, a.heads * a.size};
}
template <typename T>
__device__ Side<T> keys_of(const GradientCall<T>& g, int64_t sample, int64_t kv) {
  const int64_t at = sample * g.a.tokens * g.a.kv_stride + kv * g.a.size;
  return {g.a.k + at, g.a.v + at, g.a.kv_stride, g.a.kv_stride};
}

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
  const AttentionSettings settings = attention_settings(attributes, sizes.size);
  const T* packed = q.as<const T>();
  return {.batch = sizes.batch,
          .tokens = sizes.tokens,
          .heads = sizes.heads,
          .kv_heads = sizes.kv_heads,
          .size = sizes.size,
          .q_stride = sizes.q_stride(),
          .kv_stride = sizes.kv_stride(),
          .causal = settings.causal,
          .window = settings.window,
          .scale = settings.scale,
          .drop_threshold = settings.drop_threshold,
          .salt = settings.salt,
          .keep_scale = settings.keep_scale,
          .q = packed,
          .k = k ? k.as<const T>() : packed + sizes.k_offset(),
          .v = k ? context.inputs[2].as<const T>() : packed + sizes.v_offset(),
          .documents = context.inputs[3].as<const int64_t>(),
          .sample_keys = context.inputs[4].as<const int64_t>()};
}

}  // namespace fleet::cuda
