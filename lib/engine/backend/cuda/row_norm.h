// Normalization of rows and its gradient, for layer_norm (centered) and rms_norm. For .cu files.
#pragma once

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

// Outputs that are null are not computed. partial: broadcast_workspace(norm_columns()).
template <bool centered, typename T>
void launch_norm_gradient(cudaStream_t stream, const RowNormBackward<centered, T>& backward, T* dx,
                          float* dscale, float* dbias, float* partial) {
  const NormRows& extent = backward.extent;
  const BroadcastLoop columns = norm_columns(extent);
  if (dscale) sum_broadcast(stream, columns, NormScaleGrad<centered, T>{backward}, partial, dscale);
  if (dbias) sum_broadcast(stream, columns, NormBiasGrad<T>{backward.dy}, partial, dbias);
  if (!dx) return;
  constexpr int kWide = kPack<T>;
  if (extent.size % kWide == 0) {
    launch_rows(stream, extent.rows, extent.size,
                NormDataGradRow<centered, kWide, T>{backward, dx});
  } else {
    launch_rows(stream, extent.rows, extent.size, NormDataGradRow<centered, 1, T>{backward, dx});
  }
}

}  // namespace fleet::cuda
