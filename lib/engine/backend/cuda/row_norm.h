// Normalization of rows and its gradient, for layer_norm (centered) and rms_norm. For .cu files.
#pragma once

#include <algorithm>
#include <cmath>

#include "backend/cuda/broadcast_loops.h"
#include "backend/cuda/rows.h"

namespace fleet::cuda {

struct NormRows {
  int64_t rows, size;
  float epsilon;
};

// Rows of the last dimension.
inline NormRows norm_rows_of(const Attributes& attributes, const Shape& x) {
  const int64_t size = x[x.rank() - 1];
  return {x.elements() / size, size, static_cast<float>(attributes.number("epsilon"))};
}

// The row is read up to three times, from the cache after the first. The variance uses distances
// from the mean, which keeps precision for means far from zero. Without center, the quotient is
// rounded to T before it is multiplied by scale.
template <bool centered, int pack, typename T>
struct NormalizeRow {
  NormRows extent;
  const T *x, *residual;      // residual: null, or sum = x + residual is normalized
  T* sum;                     // may be residual
  const float *scale, *bias;  // null: 1 and 0
  T* y;
  float *mean, *variation;  // null if unused; variation: centered: variance; else 1 / sqrt(...)

  __device__ Pack<float, pack> first_read(int64_t at) const {
    auto values = load_floats<pack>(x, at);
    if (!residual) return values;
    const auto others = load_floats<pack>(residual, at);
#pragma unroll
    for (int k = 0; k < pack; ++k) {
      values.at[k] = to_float(from_float<T>(values.at[k] + others.at[k]));
    }
    store_floats<pack>(sum, at, values);
    return values;
  }

  template <int threads>
  __device__ void operator()(RowThreads<threads> row_threads, int64_t row) const {
    const int64_t at = row * extent.size, first = row_threads.first() * pack;
    const auto count = static_cast<float>(extent.size);
    const T* from = residual ? sum : x;
    float total = 0, squares = 0, middle = 0;
    for (int64_t i = first; i < extent.size; i += threads * pack) {
      const auto values = first_read(at + i);
#pragma unroll
      for (int k = 0; k < pack; ++k) {
        if constexpr (centered) {
          total += values.at[k];
        } else {
          squares += values.at[k] * values.at[k];
        }
      }
    }
    if constexpr (centered) {
      middle = row_threads.sum(total) / count;
      for (int64_t i = first; i < extent.size; i += threads * pack) {
        const auto values = load_floats<pack>(from, at + i);
#pragma unroll
        for (int k = 0; k < pack; ++k) {
          squares += (values.at[k] - middle) * (values.at[k] - middle);
        }
      }
    }
    const float spread = row_threads.sum(squares) / count;
    const float factor = 1 / sqrtf(spread + extent.epsilon);
    for (int64_t i = first; i < extent.size; i += threads * pack) {
      auto values = load_floats<pack>(from, at + i);
#pragma unroll
      for (int k = 0; k < pack; ++k) {
        float value = (values.at[k] - middle) * factor;
        if constexpr (!centered) value = to_float(from_float<T>(value));
        if (scale) value *= scale[i + k];
        if (bias) value += bias[i + k];
        values.at[k] = value;
      }
      store_floats<pack>(y, at + i, values);
    }
    if (row_threads.first() != 0) return;
    if (mean) mean[row] = middle;
    if (variation) variation[row] = centered ? spread : factor;
  }
};

// The inputs of a row's gradient.
template <bool centered, typename T>
struct RowNormBackward {
  NormRows extent;
  const T *x, *dy, *dsum;                 // dsum: null: none
  const float *scale, *mean, *variation;  // scale: null: 1
  __device__ float factor(int64_t row) const {
    return centered ? 1 / sqrtf(variation[row] + extent.epsilon) : variation[row];
  }
  __device__ float middle(int64_t row) const { return centered ? mean[row] : 0.0f; }
};

// dx may equal dy or dsum: every thread reads its elements before it writes them.
template <bool centered, int pack, typename T>
struct NormDataGradRow {
  RowNormBackward<centered, T> b;
  T* dx;
  template <int threads>
  __device__ void operator()(RowThreads<threads> row_threads, int64_t row) const {
    const int64_t size = b.extent.size, at = row * size, first = row_threads.first() * pack;
    const float factor = b.factor(row), mean = b.middle(row);
    float slope = 0, product = 0;
    for (int64_t i = first; i < size; i += threads * pack) {
      const auto x = load_floats<pack>(b.x, at + i), dy = load_floats<pack>(b.dy, at + i);
#pragma unroll
      for (int k = 0; k < pack; ++k) {
        const float g = dy.at[k] * (b.scale ? b.scale[i + k] : 1.0f);
        slope += g;
        product += g * (x.at[k] - mean) * factor;
      }
    }
    float mean_slope = 0;
    if constexpr (centered) mean_slope = row_threads.sum(slope) / static_cast<float>(size);
    const float mean_product = row_threads.sum(product) / static_cast<float>(size);
    for (int64_t i = first; i < size; i += threads * pack) {
      const auto x = load_floats<pack>(b.x, at + i);
      auto dy = load_floats<pack>(b.dy, at + i);
      Pack<float, pack> others{};
      if (b.dsum) others = load_floats<pack>(b.dsum, at + i);
#pragma unroll
      for (int k = 0; k < pack; ++k) {
        const float g = dy.at[k] * (b.scale ? b.scale[i + k] : 1.0f);
        const float n = (x.at[k] - mean) * factor;
        dy.at[k] = (g - mean_slope - n * mean_product) * factor + others.at[k];
      }
      store_floats<pack>(dx, at + i, dy);
    }
  }
};

template <bool centered, typename T>
struct NormScaleGrad {
  RowNormBackward<centered, T> backward;
  __device__ float operator()(int64_t at, int64_t) const {
    const int64_t row = quotient(at, backward.extent.size);
    const float distance = to_float(backward.x[at]) - backward.middle(row);
    return to_float(backward.dy[at]) * distance * backward.factor(row);
  }
};

template <typename T>
struct NormBiasGrad {
  const T* dy;
  __device__ float operator()(int64_t at, int64_t) const { return to_float(dy[at]); }
};

// Rows summed elementwise.
inline BroadcastLoop norm_columns(const NormRows& extent) {
  return {.outer = extent.rows, .middle = extent.size, .inner = 1, .valid = extent.size};
}

// The gradients of x and of the parameters in one pass over memory, for short rows: a warp has a
// row at a time, and a lane the sums of its columns in registers. packs: packs of a lane in a row.
// partial: [block, {dscale, dbias}, column].
template <bool centered, int pack, int packs, typename T>
__global__ void __launch_bounds__(kBlock)
    norm_gradients(RowNormBackward<centered, T> b, T* dx, float* partial) {
  constexpr int kWarps = kBlock / kWarp;
  __shared__ float shared[kWarps][kShortRow];
  const int64_t size = b.extent.size;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  Pack<float, pack> sums[2][packs] = {};
  for (int64_t row = static_cast<int64_t>(blockIdx.x) * kWarps + warp; row < b.extent.rows;
       row += static_cast<int64_t>(gridDim.x) * kWarps) {
    const int64_t at = row * size;
    const float factor = b.factor(row), mean = b.middle(row);
    Pack<float, pack> normed[packs], slopes[packs];
    float slope = 0, product = 0;
#pragma unroll
    for (int p = 0; p < packs; ++p) {
      const int64_t i = (p * kWarp + lane) * pack;
      if (i >= size) continue;
      normed[p] = load_floats<pack>(b.x, at + i);
      slopes[p] = load_floats<pack>(b.dy, at + i);
#pragma unroll
      for (int k = 0; k < pack; ++k) {
        const float n = (normed[p].at[k] - mean) * factor, dy = slopes[p].at[k];
        const float g = dy * (b.scale ? b.scale[i + k] : 1.0f);
        sums[0][p].at[k] += dy * n;
        sums[1][p].at[k] += dy;
        slope += g;
        product += g * n;
        normed[p].at[k] = n;
        slopes[p].at[k] = g;
      }
    }
    float mean_slope = 0;
    if constexpr (centered) mean_slope = warp_sum(slope) / static_cast<float>(size);
    const float mean_product = warp_sum(product) / static_cast<float>(size);
#pragma unroll
    for (int p = 0; p < packs; ++p) {
      const int64_t i = (p * kWarp + lane) * pack;
      if (i >= size) continue;
      Pack<float, pack> values{};
      if (b.dsum) values = load_floats<pack>(b.dsum, at + i);
#pragma unroll
      for (int k = 0; k < pack; ++k) {
        values.at[k] += (slopes[p].at[k] - mean_slope - normed[p].at[k] * mean_product) * factor;
      }
      store_floats<pack>(dx, at + i, values);
    }
  }
  for (int which = 0; which < 2; ++which) {
    block_barrier();
#pragma unroll
    for (int p = 0; p < packs; ++p) {
      const int64_t i = (p * kWarp + lane) * pack;
      if (i >= size) continue;
#pragma unroll
      for (int k = 0; k < pack; ++k) shared[warp][i + k] = sums[which][p].at[k];
    }
    block_barrier();
    for (int64_t i = threadIdx.x; i < size; i += kBlock) {
      float sum = 0;
      for (int w = 0; w < kWarps; ++w) sum += shared[w][i];
      partial[(static_cast<int64_t>(blockIdx.x) * 2 + which) * size + i] = sum;
    }
  }
}

// dscale and dbias (either may be null) from the blocks' sums, in order.
template <typename T>
__global__ void add_norm_sums(int64_t size, int64_t blocks, const float* partial, T* dscale,
                              T* dbias) {
  __shared__ float shared[kBroadcastRows][kBroadcastColumns];
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kBroadcastColumns + threadIdx.x;
  float sum = 0;
  for (int64_t block = threadIdx.y; block < blocks && i < 2 * size; block += kBroadcastRows) {
    sum += partial[block * 2 * size + i];
  }
  shared[threadIdx.y][threadIdx.x] = sum;
  block_barrier();
  if (threadIdx.y != 0 || i >= 2 * size) return;
  for (int row = 1; row < kBroadcastRows; ++row) sum += shared[row][threadIdx.x];
  T* to = i < size ? dscale : dbias;
  if (to) to[i < size ? i : i - size] = sum;
}

inline int64_t norm_gradient_blocks(const NormRows& extent) {
  constexpr int64_t kMostBlocks = 1056, kRowsAWarp = 4, kWarps = kBlock / kWarp;
  return std::clamp<int64_t>(extent.rows / (kRowsAWarp * kWarps), 1, kMostBlocks);
}
// Bytes for launch_norm_gradient().
inline size_t norm_gradient_workspace(const NormRows& extent) {
  const auto one_pass =
      static_cast<size_t>(norm_gradient_blocks(extent) * 2 * extent.size) * sizeof(float);
  return std::max(one_pass, broadcast_workspace(norm_columns(extent)));
}

// Normalizes all rows, with the widest packs that divide one.
template <bool centered, typename T>
void launch_norm(cudaStream_t stream, const NormRows& extent, const T* x, const T* residual, T* sum,
                 const float* scale, const float* bias, T* y, float* mean, float* variation) {
  constexpr int kWide = kPack<T>;
  if (extent.size % kWide == 0) {
    launch_rows(stream, extent.rows, extent.size,
                NormalizeRow<centered, kWide, T>{extent, x, residual, sum, scale, bias, y, mean,
                                                 variation});
  } else {
    launch_rows(
        stream, extent.rows, extent.size,
        NormalizeRow<centered, 1, T>{extent, x, residual, sum, scale, bias, y, mean, variation});
  }
}

// Whether the gradients were computed in one pass: rows of at most `packs` packs a lane.
template <int packs, bool centered, typename T>
bool try_norm_gradients(cudaStream_t stream, const RowNormBackward<centered, T>& backward, T* dx,
                        float* dscale, float* dbias, float* partial) {
  constexpr int kWide = kPack<T>;
  const int64_t size = backward.extent.size;
  if (size % kWide != 0 || size > int64_t{packs} * kWarp * kWide) return false;
  const int64_t blocks = norm_gradient_blocks(backward.extent);
  launch(norm_gradients<centered, kWide, packs, T>, static_cast<unsigned>(blocks), kBlock, 0,
         stream, backward, dx, partial);
  launch(add_norm_sums<float>, blocks_for(2 * size, kBroadcastColumns),
         dim3(kBroadcastColumns, kBroadcastRows), 0, stream, size, blocks, partial, dscale, dbias);
  return true;
}

// Outputs that are null are not computed. partial: norm_gradient_workspace().
template <bool centered, typename T>
void launch_norm_gradient(cudaStream_t stream, const RowNormBackward<centered, T>& backward, T* dx,
                          float* dscale, float* dbias, float* partial) {
  const NormRows& extent = backward.extent;
  constexpr int kWide = kPack<T>, kMostPacks = kShortRow / kWarp / kWide;
  if (dx && (dscale || dbias) &&
      (try_norm_gradients<1>(stream, backward, dx, dscale, dbias, partial) ||
       try_norm_gradients<kMostPacks>(stream, backward, dx, dscale, dbias, partial))) {
    return;
  }
  const BroadcastLoop columns = norm_columns(extent);
  if (dscale) sum_broadcast(stream, columns, NormScaleGrad<centered, T>{backward}, partial, dscale);
  if (dbias) sum_broadcast(stream, columns, NormBiasGrad<T>{backward.dy}, partial, dbias);
  if (!dx) return;
  if (extent.size % kWide == 0) {
    launch_rows(stream, extent.rows, extent.size,
                NormDataGradRow<centered, kWide, T>{backward, dx});
  } else {
    launch_rows(stream, extent.rows, extent.size, NormDataGradRow<centered, 1, T>{backward, dx});
  }
}

}  // namespace fleet::cuda
