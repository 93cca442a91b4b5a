#include <cmath>

#include "backend/cuda/attention_tiles.h"

namespace fleet::cuda {
namespace {

constexpr int kKeyTile = 64;

// The scores of a warp's 16 queries and a tile's keys, [16, 8] each.
template <int width, typename T>
__device__ void multiply_keys(const uint32_t (&queries)[width / 16][4], const T* keys,
                              float (&scores)[kKeyTile / 8][4]) {
#pragma unroll
  for (int n = 0; n < kKeyTile / 8; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) scores[n][i] = 0;
  }
#pragma unroll
  for (int n = 0; n < kKeyTile / 16; ++n) {
#pragma unroll
    for (int k = 0; k < width / 16; ++k) {
      uint32_t right[4];
      load_right<width>(right, keys + n * 16 * kTileStride<width>, k * 16);
      multiply_tiles<T>(scores[2 * n], queries[k], right[0], right[1]);
      multiply_tiles<T>(scores[2 * n + 1], queries[k], right[2], right[3]);
    }
  }
}

// Over the four lanes that share a row.
template <typename Operator>
__device__ float row_reduce(float value) {
  value = Operator::of(value, shuffle_xor(value, 1));
  return Operator::of(value, shuffle_xor(value, 2));
}

template <typename T, int width>
__global__ void __launch_bounds__(kAttentionThreads)
    attend_on_tiles(AttentionCall<T> a, int64_t blocks, T* y, float* lse) {
  const int size = static_cast<int>(a.size);
  T* keys = dynamic_shared<T>();
  T* values = keys + kKeyTile * kTileStride<width>;
  const TileLane lane = TileLane::of_thread();
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  // With a causal mask the last queries take longest, so they begin.
  const int64_t pair = blockIdx.x / blocks;
  const int64_t begin = (blocks - 1 - blockIdx.x % blocks) * kBlockRows;
  const int64_t sample = pair / a.heads, head = pair % a.heads, kv = head / a.group();
  const int64_t end = begin + kBlockRows < a.tokens ? begin + kBlockRows : a.tokens;
  const int64_t row = begin + warp * kWarpRows;
  const T* k = a.k + sample * a.tokens * a.kv_stride + kv * a.size;
  const T* v = a.v + sample * a.tokens * a.kv_stride + kv * a.size;
  uint32_t queries[width / 16][4];
  load_tile<width, kBlockRows>(a.q + sample * a.tokens * a.q_stride + head * a.size, a.q_stride,
                               begin, a.tokens, size, keys);
  block_barrier();
#pragma unroll
  for (int i = 0; i < width / 16; ++i) {
    load_left<width>(queries[i], keys + warp * kWarpRows * kTileStride<width>, i * 16);
  }
  const uint64_t stream = a.stream(sample);
  const IdRange query_ids = a.ids_of(sample, begin, kBlockRows);
  float maxima[2] = {Max::kIdentity, Max::kIdentity}, sums[2] = {0, 0};
  float out[width / 8][4] = {};
  const int64_t last = a.last_key(end);
  for (int64_t first = a.first_key(begin, kKeyTile); first < last; first += kKeyTile) {
    const IdRange key_ids = a.ids_of(sample, first, kKeyTile);
    if (!key_ids.overlaps(query_ids)) continue;
    block_barrier();
    load_tile<width, kKeyTile>(k, a.kv_stride, first, a.tokens, size, keys);
    load_tile<width, kKeyTile>(v, a.kv_stride, first, a.tokens, size, values);
    block_barrier();
    float scores[kKeyTile / 8][4];
    multiply_keys<width>(queries, keys, scores);
    const bool whole = a.sees_all(row, kWarpRows, first, kKeyTile) && key_ids.equals_all(query_ids);
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int64_t query = row + lane.row + 8 * r;
      float top = maxima[r];
#pragma unroll
      for (int n = 0; n < kKeyTile / 8; ++n) {
#pragma unroll
        for (int c = 0; c < 2; ++c) {
          const int64_t key = first + n * 8 + lane.column + c;
          const bool live =
              whole || (key < a.tokens && query < a.tokens && a.sees(sample, query, key));
          float& score = scores[n][2 * r + c];
          score = live ? score * a.scale : Max::kIdentity;
          top = Max::of(top, score);
        }
      }
      top = row_reduce<Max>(top);
      const float before = expf(maxima[r] - top);
      maxima[r] = top;
      float sum = 0;
#pragma unroll
      for (int n = 0; n < kKeyTile / 8; ++n) {
#pragma unroll
        for (int c = 0; c < 2; ++c) {
          float& score = scores[n][2 * r + c];
          const float p = score == Max::kIdentity ? 0.0f : expf(score - top);
          sum += p;
          const int64_t key = first + n * 8 + lane.column + c;
          score = a.drop_threshold ? p * a.drop_factor(stream, head, query, key) : p;
        }
      }
      sums[r] = sums[r] * before + sum;
#pragma unroll
      for (int d = 0; d < width / 8; ++d) {
        out[d][2 * r] *= before;
        out[d][2 * r + 1] *= before;
      }
    }
    add_products<width, kKeyTile>(scores, values, out);
  }
  float factors[2];
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const float sum = row_reduce<Sum>(sums[r]);
    const int64_t query = row + lane.row + 8 * r;
    factors[r] = 1 / sum;
    if (lse && lane.column == 0 && query < a.tokens) {
      lse[pair * a.tokens + query] = maxima[r] + logf(sum);
    }
  }
  store_results<width>(out, factors, row, a.tokens, size, a.heads * a.size,
                       y + (sample * a.tokens * a.heads + head) * a.size);
}

template <typename T, int width>
void launch_attend_tiles(cudaStream_t stream, const AttentionCall<T>& a, T* y, float* lse) {
  const int64_t blocks = ceil_div(a.tokens, kBlockRows);
  launch(attend_on_tiles<T, width>, blocks_for(a.batch * a.heads * blocks, 1), kAttentionThreads,
         2 * kKeyTile * kTileStride<width> * sizeof(T), stream, a, blocks, y, lse);
}

}  // namespace

template <typename T>
void attend_tiles(cudaStream_t stream, const AttentionCall<T>& a, T* y, float* lse) {
  if (a.size <= 32) {
    launch_attend_tiles<T, 32>(stream, a, y, lse);
  } else if (a.size <= 64) {
    launch_attend_tiles<T, 64>(stream, a, y, lse);
  } else {
    launch_attend_tiles<T, 128>(stream, a, y, lse);
  }
}
template void attend_tiles(cudaStream_t, const AttentionCall<__half>&, __half*, float*);
template void attend_tiles(cudaStream_t, const AttentionCall<__nv_bfloat16>&, __nv_bfloat16*,
                           float*);

}  // namespace fleet::cuda
