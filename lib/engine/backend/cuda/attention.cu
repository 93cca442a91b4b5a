#include <cmath>

#include "backend/cuda/attention.h"
#include "backend/cuda/attention_dnn.h"
#include "backend/cuda/attention_tiles.h"

namespace fleet {
namespace {

// Each warp has `rows` queries of one head, each lane `columns` elements of their outputs and one
// key of a tile.
template <typename T, int rows, int columns>
__global__ void attend(cuda::AttentionCall<T> a, int64_t blocks, T* y, float* lse) {
  constexpr int kOwn = rows * cuda::kAttentionWarps, kTile = cuda::kAttentionTile;
  const int size = static_cast<int>(a.size), stride = size + 1;  // free of bank conflicts
  float* own = cuda::dynamic_shared<float>();
  float* tile = own + kOwn * size;
  float* weights = tile + kTile * stride;
  const int warp = static_cast<int>(threadIdx.x) / cuda::kWarp;
  const int lane = static_cast<int>(threadIdx.x) % cuda::kWarp;
  const int64_t pair = blockIdx.x / blocks, begin = blockIdx.x % blocks * kOwn;
  const int64_t sample = pair / a.heads, head = pair % a.heads, kv = head / a.group();
  const int64_t end = begin + kOwn < a.tokens ? begin + kOwn : a.tokens;
  const T* k = a.k + sample * a.tokens * a.kv_stride + kv * a.size;
  const T* v = a.v + sample * a.tokens * a.kv_stride + kv * a.size;
  cuda::load_rows(a.q + sample * a.tokens * a.q_stride + head * a.size, a.q_stride, begin, kOwn,
                  a.tokens, size, size, own);
  own += warp * rows * size;
  weights += warp * rows * kTile;
  const uint64_t stream = a.stream(sample);
  float maxima[rows], sums[rows], out[rows][columns];
#pragma unroll
  for (int r = 0; r < rows; ++r) {
    maxima[r] = cuda::Max::kIdentity;
    sums[r] = 0;
#pragma unroll
    for (int i = 0; i < columns; ++i) out[r][i] = 0;
  }
  const cuda::IdRange query_ids = a.ids_of(sample, begin, kOwn);
  const int64_t last = a.last_key(end);
  for (int64_t first = a.first_key(begin, kTile); first < last; first += kTile) {
    if (a.documents && !a.ids_of(sample, first, kTile).overlaps(query_ids)) continue;
    cuda::block_barrier();
    cuda::load_rows(k, a.kv_stride, first, kTile, a.tokens, size, stride, tile);
    cuda::block_barrier();
    float scores[rows];
    cuda::multiply_rows<rows>(own, tile + lane * stride, size, scores);
    const int64_t key = first + lane;
#pragma unroll
    for (int r = 0; r < rows; ++r) {
      const int64_t query = begin + warp * rows + r;
      const bool live = key < a.tokens && query < a.tokens && a.sees(sample, query, key);
      const float score = live ? scores[r] * a.scale : cuda::Max::kIdentity;
      const float top = cuda::Max::of(maxima[r], cuda::warp_max(score));
      const float before = expf(maxima[r] - top), p = live ? expf(score - top) : 0.0f;
      maxima[r] = top;
      sums[r] = sums[r] * before + p;
      weights[r * kTile + lane] = p * a.drop_factor(stream, head, query, key);
#pragma unroll
      for (int i = 0; i < columns; ++i) out[r][i] *= before;
    }
    cuda::block_barrier();
    cuda::load_rows(v, a.kv_stride, first, kTile, a.tokens, size, stride, tile);
    cuda::block_barrier();
    cuda::add_weighted<rows, columns>(weights, tile, stride, size, out);
  }
#pragma unroll
  for (int r = 0; r < rows; ++r) {
    const int64_t query = begin + warp * rows + r;
    const float sum = cuda::warp_sum(sums[r]);
    if (query >= a.tokens) continue;
#pragma unroll
    for (int i = 0; i < columns; ++i) {
      const int column = lane + cuda::kWarp * i;
      if (column >= size) break;
      y[((sample * a.tokens + query) * a.heads + head) * a.size + column] =
          cuda::from_float<T>(out[r][i] / sum);
    }
    if (lse && lane == 0) lse[pair * a.tokens + query] = maxima[r] + logf(sum);
  }
}

template <typename T, int rows, int columns>
void launch_attend(cudaStream_t stream, const cuda::AttentionCall<T>& a, T* y, float* lse) {
  constexpr int kOwn = rows * cuda::kAttentionWarps;
  const int64_t blocks = cuda::ceil_div(a.tokens, kOwn);
  const auto floats = static_cast<size_t>(kOwn * a.size + cuda::kAttentionTile * (a.size + 1) +
                                          kOwn * cuda::kAttentionTile);
  cuda::launch(attend<T, rows, columns>, cuda::blocks_for(a.batch * a.heads * blocks, 1),
               cuda::kAttentionThreads, floats * sizeof(float), stream, a, blocks, y, lse);
}

}  // namespace

FLEET_KERNEL(cuda, attention) {
  def.dtypes = cuda::floating_types();
  def.layouts = [](LayoutQuery& query) {
    query.workspace(cuda::attention_dnn_workspace(query, /*gradient=*/false).value_or(0));
  };
  def.create = [](KernelContext& context) -> std::unique_ptr<Kernel> {
    if (auto kernel = cuda::make_attention_dnn(context, /*gradient=*/false)) return kernel;
    const Argument y = context.outputs[0];
    float* lse = context.outputs[1].as<float>();
    return cuda::dispatch(y.dtype, [&](auto type) {
      using T = decltype(type);
      const cuda::AttentionCall<T> a = cuda::attention_call<T>(context);
      const bool on_tiles = cuda::takes_tiles(context.device, y.dtype, a.size);
      return make_kernel([=](Stream& handle) {
        const cudaStream_t stream = cuda::stream_of(handle);
        if constexpr (!std::is_same_v<T, float>) {
          if (on_tiles) return cuda::attend_tiles(stream, a, y.as<T>(), lse);
        }
        if (a.size <= 64) {
          launch_attend<T, 8, 2>(stream, a, y.as<T>(), lse);
        } else if (a.size <= 128) {
          launch_attend<T, 4, 4>(stream, a, y.as<T>(), lse);
        } else {
          launch_attend<T, 2, 8>(stream, a, y.as<T>(), lse);
        }
      });
    });
  };
}

}  // namespace fleet
