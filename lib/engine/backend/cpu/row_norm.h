// Normalization of rows and its gradient, for layer_norm (centered) and rms_norm. A row is read
// from memory once; further passes over it find it in the cache. Every row is summed by one thread,
// and the rows of a parameter's gradient in parts that do not depend on the number of threads.
#pragma once

#include <bit>
#include <cmath>
#include <memory>
#include <vector>

#include "backend/cpu/elementwise.h"

namespace fleet::cpu {

// value rounded to T, as float. In a form that is vectorized.
template <typename T>
FLEET_INLINE float rounded_to(float value) {
  if constexpr (std::is_same_v<T, BFloat16>) {
    uint32_t narrow;
    narrow_to_bfloat16(std::bit_cast<uint32_t>(value), narrow);
    return std::bit_cast<float>(narrow << 16);
  } else {
    return value;
  }
}

// A row's parameters, or a constant in their place if they are absent. Copies share the constant.
class RowParameters {
 public:
  RowParameters(const Argument& given, int64_t size, float constant) {
    if (!given) constant_ = std::make_shared<std::vector<float>>(size, constant);
    values_ = given ? given.as<const float>() : constant_->data();
  }
  const float* values() const { return values_; }

 private:
  std::shared_ptr<std::vector<float>> constant_;
  const float* values_;
};

// sum = x + residual
template <typename T>
static FLEET_SIMD void add_row(const T* x, const T* residual, T* sum, int64_t size) {
#pragma omp simd
  for (int64_t i = 0; i < size; ++i) {
    sum[i] = static_cast<float>(x[i]) + static_cast<float>(residual[i]);
  }
}

template <typename T>
static FLEET_SIMD void rms_norm_row(const T* x, const float* scale, T* y, int64_t size,
                                    float epsilon, float* saved_rstd) {
  float squares = 0;
#pragma omp simd reduction(+ : squares)
  for (int64_t i = 0; i < size; ++i) {
    const float value = x[i];
    squares += value * value;
  }
  const float rstd = 1 / std::sqrt(squares / static_cast<float>(size) + epsilon);
#pragma omp simd
  for (int64_t i = 0; i < size; ++i) {
    y[i] = rounded_to<T>(static_cast<float>(x[i]) * rstd) * scale[i];
  }
  *saved_rstd = rstd;
}

template <typename T>
static FLEET_SIMD void layer_norm_row(const T* x, const float* scale, const float* bias, T* y,
                                      int64_t size, float epsilon, float* saved_mean,
                                      float* saved_variance) {
  float sum = 0, squares = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < size; ++i) sum += static_cast<float>(x[i]);
  const float mean = sum / static_cast<float>(size);
#pragma omp simd reduction(+ : squares)
  for (int64_t i = 0; i < size; ++i) {
    const float distance = static_cast<float>(x[i]) - mean;
    squares += distance * distance;
  }
  const float variance = squares / static_cast<float>(size);
  const float factor = 1 / std::sqrt(variance + epsilon);
#pragma omp simd
  for (int64_t i = 0; i < size; ++i) {
    y[i] = (static_cast<float>(x[i]) - mean) * factor * scale[i] + bias[i];
  }
  *saved_mean = mean;
  *saved_variance = variance;
}

// Sums of a row's gradient, and its shares of those of the parameters; dbias only if centered.
struct RowSums {
  float slope = 0, product = 0;
};
template <bool centered, typename T>
static FLEET_SIMD void row_sums(const T* x, const T* dy, const float* scale, float mean, float rstd,
                                int64_t size, float* dscale, float* dbias, RowSums* sums) {
  float slope = 0, product = 0;
#pragma omp simd reduction(+ : slope, product)
  for (int64_t i = 0; i < size; ++i) {
    const float n = (static_cast<float>(x[i]) - mean) * rstd, d = dy[i], g = d * scale[i];
    product += g * n;
    dscale[i] += d * n;
    if constexpr (centered) {
      slope += g;
      dbias[i] += d;
    }
  }
  *sums = {slope / static_cast<float>(size), product / static_cast<float>(size)};
}

// dx may be dy or dsum.
template <bool has_sum, typename T>
static FLEET_SIMD void row_gradient(const T* x, const T* dy, const T* dsum, const float* scale,
                                    float mean, float rstd, RowSums sums, int64_t size, T* dx) {
#pragma omp simd
  for (int64_t i = 0; i < size; ++i) {
    const float n = (static_cast<float>(x[i]) - mean) * rstd;
    const float d = (static_cast<float>(dy[i]) * scale[i] - sums.slope - n * sums.product) * rstd;
    if constexpr (has_sum) {
      dx[i] = d + static_cast<float>(dsum[i]);
    } else {
      dx[i] = d;
    }
  }
}

// Parts of the rows, at most: their sums are added in order.
inline constexpr int64_t kNormParts = 64;

inline size_t row_norm_workspace(int64_t size) {
  return static_cast<size_t>(2 * kNormParts * size) * sizeof(float);
}

template <bool centered, typename T>
struct RowNormGradient {
  const T *x, *dy, *dsum;                 // dsum: may be null
  const float *scale, *mean, *variation;  // variation: centered: the variance; else 1 / sqrt(...)
  T* dx;                                  // null if not needed, as dscale and dbias
  float *dscale, *dbias, *partial;        // partial: row_norm_workspace()
  int64_t rows, size;
  float epsilon;  // centered only

  void run_part(int64_t part, int64_t parts) const {
    float* scales = partial + part * size;
    float* biases = scales + kNormParts * size;
    std::fill_n(scales, size, 0.0f);
    if constexpr (centered) std::fill_n(biases, size, 0.0f);
    for (int64_t row = rows * part / parts; row < rows * (part + 1) / parts; ++row) {
      const int64_t at = row * size;
      const float middle = centered ? mean[row] : 0;
      const float rstd = centered ? 1 / std::sqrt(variation[row] + epsilon) : variation[row];
      RowSums sums;
      row_sums<centered>(x + at, dy + at, scale, middle, rstd, size, scales, biases, &sums);
      if (!dx) continue;
      if (dsum) {
        row_gradient<true>(x + at, dy + at, dsum + at, scale, middle, rstd, sums, size, dx + at);
      } else {
        row_gradient<false>(x + at, dy + at, dsum, scale, middle, rstd, sums, size, dx + at);
      }
    }
  }

  void run() const {
    const int64_t parts = std::min(kNormParts, rows);
    const bool parallel = rows * size >= kParallelElements;
#pragma omp parallel for if (parallel)
    for (int64_t part = 0; part < parts; ++part) run_part(part, parts);
    add_parts(parts, partial, dscale);
    if constexpr (centered) add_parts(parts, partial + kNormParts * size, dbias);
  }

  void add_parts(int64_t parts, const float* from, float* to) const {
    if (!to) return;
    const bool parallel = parts * size >= kParallelElements;
#pragma omp parallel for simd if (parallel)
    for (int64_t i = 0; i < size; ++i) {
      float sum = 0;
      for (int64_t part = 0; part < parts; ++part) sum += from[part * size + i];
      to[i] = sum;
    }
  }
};

// Calls body(row) for all rows on all threads.
template <typename Body>
void for_norm_rows(int64_t rows, int64_t size, Body body) {
  const bool parallel = rows * size >= kParallelElements;
#pragma omp parallel for if (parallel)
  for (int64_t row = 0; row < rows; ++row) body(row);
}

}  // namespace fleet::cpu
