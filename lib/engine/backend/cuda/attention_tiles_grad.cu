#include <cmath>

#include "backend/cuda/attention_tiles.h"

namespace fleet::cuda {
namespace {

// Rows of the other side in shared memory.
template <int width>
constexpr int kOtherTile = width <= 64 ? 32 : 16;

// Each warp has 16 keys (of_keys: dk and dv, over all heads of their group) or queries (dq) of one
// head. Nothing is added up across blocks, so that results are bitwise reproducible.
template <typename T, bool of_keys, int width>
__global__ void __launch_bounds__(kAttentionThreads)
    differentiate_on_tiles(GradientCall<T> g, int64_t blocks) {
  constexpr int kTile = kOtherTile<width>, kStride = kTileStride<width>;
  const AttentionCall<T>& a = g.a;
  const int size = static_cast<int>(a.size);
  T* own_scored = dynamic_shared<T>();
  T* own_sloped = own_scored + kBlockRows * kStride;
  T* scored = own_sloped + kBlockRows * kStride;
  T* sloped = scored + kTile * kStride;
  const TileLane lane = TileLane::of_thread();
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int64_t heads = of_keys ? a.kv_heads : a.heads, group = a.group();
  const int64_t pair = blockIdx.x / blocks, block = blockIdx.x % blocks;
  // With a causal mask the first keys and the last queries take longest, so they begin.
  const int64_t begin = (of_keys ? block : blocks - 1 - block) * kBlockRows;
  const int64_t sample = pair / heads, own_head = pair % heads;
  const int64_t end = begin + kBlockRows < a.tokens ? begin + kBlockRows : a.tokens;
  const int64_t row = begin + warp * kWarpRows;
  const Side<T> own = of_keys ? keys_of(g, sample, own_head) : queries_of(g, sample, own_head);
  load_tile<width, kBlockRows>(own.scored, own.scored_stride, begin, a.tokens, size, own_scored);
  load_tile<width, kBlockRows>(own.sloped, own.sloped_stride, begin, a.tokens, size, own_sloped);
  own_scored += warp * kWarpRows * kStride;
  own_sloped += warp * kWarpRows * kStride;
  const uint64_t stream = a.stream(sample);
  const IdRange own_ids = a.ids_of(sample, begin, kBlockRows);
  float d_scored[width / 8][4] = {}, d_sloped[of_keys ? width / 8 : 1][4] = {};
  const int64_t last = of_keys ? a.last_query(end) : a.last_key(end);
  for (int64_t member = 0; member < (of_keys ? group : 1); ++member) {
    const int64_t head = of_keys ? own_head * group + member : own_head;
    const Side<T> other =
        of_keys ? queries_of(g, sample, head) : keys_of(g, sample, own_head / group);
    const float* lse = g.lse + (sample * a.heads + head) * a.tokens;
    const float* delta = g.delta + (sample * a.heads + head) * a.tokens;
    int64_t first = of_keys ? a.first_query(begin, kTile) : a.first_key(begin, kTile);
    for (; first < last; first += kTile) {
      const IdRange ids = a.ids_of(sample, first, kTile);
      if (!ids.overlaps(own_ids)) continue;
      block_barrier();
      load_tile<width, kTile>(other.scored, other.scored_stride, first, a.tokens, size, scored);
      load_tile<width, kTile>(other.sloped, other.sloped_stride, first, a.tokens, size, sloped);
      block_barrier();
      float slopes[kTile / 8][4] = {}, weights[kTile / 8][4] = {};  // begin as scores, dy vᵀ
#pragma unroll
      for (int k = 0; k < width / 16; ++k) {
        uint32_t left_scored[4], left_sloped[4];
        load_left<width>(left_scored, own_scored, k * 16);
        load_left<width>(left_sloped, own_sloped, k * 16);
#pragma unroll
        for (int n = 0; n < kTile / 16; ++n) {
          uint32_t right[4];
          load_right<width>(right, scored + n * 16 * kStride, k * 16);
          multiply_tiles<T>(slopes[2 * n], left_scored, right[0], right[1]);
          multiply_tiles<T>(slopes[2 * n + 1], left_scored, right[2], right[3]);
          load_right<width>(right, sloped + n * 16 * kStride, k * 16);
          multiply_tiles<T>(weights[2 * n], left_sloped, right[0], right[1]);
          multiply_tiles<T>(weights[2 * n + 1], left_sloped, right[2], right[3]);
        }
      }
      const bool whole =
          ids.equals_all(own_ids) && (of_keys ? a.sees_all(first, kTile, row, kWarpRows)
                                              : a.sees_all(row, kWarpRows, first, kTile));
#pragma unroll
      for (int n = 0; n < kTile / 8; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int64_t mine = row + lane.row + i / 2 * 8,
                        theirs = first + n * 8 + lane.column + i % 2;
          const int64_t query = of_keys ? theirs : mine, key = of_keys ? mine : theirs;
          const bool live =
              whole || (key < a.tokens && query < a.tokens && a.sees(sample, query, key));
          float p = 0, slope = 0;
          if (live) {
            const float kept = a.drop_factor(stream, head, query, key);
            const float full = expf(slopes[n][i] * a.scale - lse[query]);
            slope = full * (weights[n][i] * kept - delta[query]);
            p = full * kept;
          }
          slopes[n][i] = slope;
          weights[n][i] = p;
        }
      }
      add_products<width, kTile>(slopes, scored, d_scored);
      if constexpr (of_keys) add_products<width, kTile>(weights, sloped, d_sloped);
    }
  }
  const float scales[2] = {a.scale, a.scale}, ones[2] = {1, 1};
  if constexpr (of_keys) {
    const int64_t at = sample * a.tokens * a.kv_stride + own_head * a.size;
    if (g.dk) store_results<width>(d_scored, scales, row, a.tokens, size, a.kv_stride, g.dk + at);
    if (g.dv) store_results<width>(d_sloped, ones, row, a.tokens, size, a.kv_stride, g.dv + at);
  } else {
    const int64_t at = sample * a.tokens * a.q_stride + own_head * a.size;
    store_results<width>(d_scored, scales, row, a.tokens, size, a.q_stride, g.dq + at);
  }
}

template <typename T, bool of_keys, int width>
void launch_differentiate_tiles(cudaStream_t stream, const GradientCall<T>& g) {
  const int64_t blocks = ceil_div(g.a.tokens, kBlockRows);
  const int64_t heads = of_keys ? g.a.kv_heads : g.a.heads;
  launch(differentiate_on_tiles<T, of_keys, width>, blocks_for(g.a.batch * heads * blocks, 1),
         kAttentionThreads, 2 * (kBlockRows + kOtherTile<width>)*kTileStride<width> * sizeof(T),
         stream, g, blocks);
}

template <typename T, int width>
void launch_both_sides(cudaStream_t stream, const GradientCall<T>& g) {
  if (g.dq) launch_differentiate_tiles<T, false, width>(stream, g);
  if (g.dk || g.dv) launch_differentiate_tiles<T, true, width>(stream, g);
}

}  // namespace

template <typename T>
void differentiate_tiles(cudaStream_t stream, const GradientCall<T>& g) {
  if (g.a.size <= 32) {
    launch_both_sides<T, 32>(stream, g);
  } else if (g.a.size <= 64) {
    launch_both_sides<T, 64>(stream, g);
  } else {
    launch_both_sides<T, 128>(stream, g);
  }
}
template void differentiate_tiles(cudaStream_t, const GradientCall<__half>&);
template void differentiate_tiles(cudaStream_t, const GradientCall<__nv_bfloat16>&);

}  // namespace fleet::cuda
