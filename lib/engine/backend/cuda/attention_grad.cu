#include <cmath>

#include "backend/cuda/attention.h"
#include "backend/cuda/attention_dnn.h"
#include "backend/cuda/attention_tiles.h"
#include "backend/cuda/rows.h"

namespace fleet {
namespace {

// delta [batch, heads, tokens] of y and dy [batch, tokens, heads, size].
template <typename T>
struct DeltaRow {
  const T *y, *dy;
  float* delta;
  int64_t tokens, heads, size;
  template <int threads>
  __device__ void operator()(cuda::RowThreads<threads> row_threads, int64_t row) const {
    float sum = 0;
    for (int64_t i = row_threads.first(); i < size; i += threads) {
      sum += cuda::to_float(y[row * size + i]) * cuda::to_float(dy[row * size + i]);
    }
    sum = row_threads.sum(sum);
    const int64_t token = row / heads, head = row - token * heads, sample = token / tokens;
    if (row_threads.first() == 0) {
      delta[(sample * heads + head) * tokens + token - sample * tokens] = sum;
    }
  }
};

template <typename T, int rows, int columns>
__device__ void write_sums(const float (&sums)[rows][columns], float factor, int64_t first,
                           int64_t tokens, int size, int64_t stride, T* to) {
  const int lane = static_cast<int>(threadIdx.x) % cuda::kWarp;
#pragma unroll
  for (int r = 0; r < rows; ++r) {
    if (first + r >= tokens) break;
#pragma unroll
    for (int i = 0; i < columns; ++i) {
      const int column = lane + cuda::kWarp * i;
      if (column >= size) break;
      to[(first + r) * stride + column] = cuda::from_float<T>(sums[r][i] * factor);
    }
  }
}

// Each warp has `rows` keys (of_keys: dk and dv, over all heads of their group) or queries (dq) of
// one head, each lane one row of a tile of the other side.
template <typename T, bool of_keys, int rows, int columns>
__global__ void differentiate(cuda::GradientCall<T> g, int64_t blocks) {
  constexpr int kOwn = rows * cuda::kAttentionWarps, kTile = cuda::kAttentionTile;
  const cuda::AttentionCall<T>& a = g.a;
  const int size = static_cast<int>(a.size), stride = size + 1;
  float* scored = cuda::dynamic_shared<float>();
  float* sloped = scored + kOwn * size;
  float* tile = sloped + kOwn * size;
  float* weights = tile + kTile * stride;  // slopes of the scores; the probabilities follow
  float* probabilities = weights + kOwn * kTile;
  const int warp = static_cast<int>(threadIdx.x) / cuda::kWarp;
  const int lane = static_cast<int>(threadIdx.x) % cuda::kWarp;
  const int64_t heads = of_keys ? a.kv_heads : a.heads, group = a.group();
  const int64_t pair = blockIdx.x / blocks, begin = blockIdx.x % blocks * kOwn;
  const int64_t sample = pair / heads, own_head = pair % heads;
  const int64_t end = begin + kOwn < a.tokens ? begin + kOwn : a.tokens;
  const cuda::Side<T> own =
      of_keys ? cuda::keys_of(g, sample, own_head) : cuda::queries_of(g, sample, own_head);
  cuda::load_rows(own.scored, own.scored_stride, begin, kOwn, a.tokens, size, size, scored);
  cuda::load_rows(own.sloped, own.sloped_stride, begin, kOwn, a.tokens, size, size, sloped);
  scored += warp * rows * size;
  sloped += warp * rows * size;
  weights += warp * rows * kTile;
  probabilities += warp * rows * kTile;
  const uint64_t stream = a.stream(sample);
  float d_scored[rows][columns] = {}, d_sloped[rows][columns] = {};
  const cuda::IdRange own_ids = a.ids_of(sample, begin, kOwn);
  const int64_t last = of_keys ? a.last_query(end) : a.last_key(end);
  for (int64_t member = 0; member < (of_keys ? group : 1); ++member) {
    const int64_t head = of_keys ? own_head * group + member : own_head;
    const cuda::Side<T> other =
        of_keys ? cuda::queries_of(g, sample, head) : cuda::keys_of(g, sample, own_head / group);
    const float* lse = g.lse + (sample * a.heads + head) * a.tokens;
    const float* delta = g.delta + (sample * a.heads + head) * a.tokens;
    int64_t first = of_keys ? a.first_query(begin, kTile) : a.first_key(begin, kTile);
    for (; first < last; first += kTile) {
      if (a.documents && !a.ids_of(sample, first, kTile).overlaps(own_ids)) continue;
      float scores[rows], slopes[rows];
      cuda::block_barrier();
      cuda::load_rows(other.sloped, other.sloped_stride, first, kTile, a.tokens, size, stride,
                      tile);
      cuda::block_barrier();
      cuda::multiply_rows<rows>(sloped, tile + lane * stride, size, slopes);
      cuda::block_barrier();
      cuda::load_rows(other.scored, other.scored_stride, first, kTile, a.tokens, size, stride,
                      tile);
      cuda::block_barrier();
      cuda::multiply_rows<rows>(scored, tile + lane * stride, size, scores);
#pragma unroll
      for (int r = 0; r < rows; ++r) {
        const int64_t row = begin + warp * rows + r;
        const int64_t query = of_keys ? first + lane : row, key = of_keys ? row : first + lane;
        const bool live = key < a.tokens && query < a.tokens && a.sees(sample, query, key);
        const float p = live ? expf(scores[r] * a.scale - lse[query]) : 0.0f;
        const float kept = live ? a.drop_factor(stream, head, query, key) : 0.0f;
        weights[r * kTile + lane] = live ? p * (slopes[r] * kept - delta[query]) : 0.0f;
        if (of_keys) probabilities[r * kTile + lane] = p * kept;
      }
      cuda::block_barrier();
      cuda::add_weighted<rows, columns>(weights, tile, stride, size, d_scored);
      if (!of_keys) continue;
      cuda::block_barrier();
      cuda::load_rows(other.sloped, other.sloped_stride, first, kTile, a.tokens, size, stride,
                      tile);
      cuda::block_barrier();
      cuda::add_weighted<rows, columns>(probabilities, tile, stride, size, d_sloped);
    }
  }
  const int64_t row = begin + warp * rows;
  if (of_keys) {
    const int64_t at = sample * a.tokens * a.kv_stride + own_head * a.size;
    if (g.dk) write_sums(d_scored, a.scale, row, a.tokens, size, a.kv_stride, g.dk + at);
    if (g.dv) write_sums(d_sloped, 1.0f, row, a.tokens, size, a.kv_stride, g.dv + at);
  } else {
    const int64_t at = sample * a.tokens * a.q_stride + own_head * a.size;
    write_sums(d_scored, a.scale, row, a.tokens, size, a.q_stride, g.dq + at);
  }
}

template <typename T, bool of_keys, int rows, int columns>
void launch_differentiate(cudaStream_t stream, const cuda::GradientCall<T>& g) {
  constexpr int kOwn = rows * cuda::kAttentionWarps;
  const int64_t blocks = cuda::ceil_div(g.a.tokens, kOwn);
  const int64_t heads = of_keys ? g.a.kv_heads : g.a.heads;
  const auto floats =
      static_cast<size_t>(2 * kOwn * g.a.size + cuda::kAttentionTile * (g.a.size + 1) +
                          2 * kOwn * cuda::kAttentionTile);
  cuda::launch(differentiate<T, of_keys, rows, columns>,
               cuda::blocks_for(g.a.batch * heads * blocks, 1), cuda::kAttentionThreads,
               floats * sizeof(float), stream, g, blocks);
}

template <typename T, bool of_keys>
void launch_side(cudaStream_t stream, const cuda::GradientCall<T>& g) {
  if (g.a.size <= 64) {
    launch_differentiate<T, of_keys, 4, 2>(stream, g);
  } else if (g.a.size <= 128) {
    launch_differentiate<T, of_keys, 2, 4>(stream, g);
  } else {
    launch_differentiate<T, of_keys, 1, 8>(stream, g);
  }
}

}  // namespace

FLEET_KERNEL(cuda, attention_grad) {
  def.dtypes = cuda::floating_types();
  def.layouts = [](LayoutQuery& query) {
    const size_t delta = static_cast<size_t>(query.input_var(6).shape.elements()) * sizeof(float);
    query.workspace(cuda::attention_dnn_workspace(query, /*gradient=*/true).value_or(delta));
  };
  def.create = [](KernelContext& context) -> std::unique_ptr<Kernel> {
    if (auto kernel = cuda::make_attention_dnn(context, /*gradient=*/true)) return kernel;
    const Argument y = context.inputs[5], dy = context.inputs[7];
    float* delta = static_cast<float*>(context.workspace);
    return cuda::dispatch(y.dtype, [&](auto type) {
      using T = decltype(type);
      cuda::GradientCall<T> g{.a = cuda::attention_call<T>(context),
                              .dy = dy.as<const T>(),
                              .lse = context.inputs[6].as<const float>(),
                              .delta = delta,
                              .dq = context.outputs[0].as<T>(),
                              .dk = context.outputs[1].as<T>(),
                              .dv = context.outputs[2].as<T>()};
      if (!context.inputs[1] && g.dq) {
        g.dk = g.dq + g.a.heads * g.a.size;
        g.dv = g.dk + g.a.kv_heads * g.a.size;
      }
      const DeltaRow<T> rows{y.as<const T>(), g.dy, delta, g.a.tokens, g.a.heads, g.a.size};
      const bool on_tiles = cuda::takes_tiles(context.device, y.dtype, g.a.size);
      return make_kernel([=](Stream& handle) {
        const cudaStream_t stream = cuda::stream_of(handle);
        cuda::launch_rows(stream, g.a.batch * g.a.tokens * g.a.heads, g.a.size, rows);
        if constexpr (!std::is_same_v<T, float>) {
          if (on_tiles) return cuda::differentiate_tiles(stream, g);
        }
        if (g.dq) launch_side<T, false>(stream, g);
        if (g.dk || g.dv) launch_side<T, true>(stream, g);
      });
    });
  };
}

}  // namespace fleet
