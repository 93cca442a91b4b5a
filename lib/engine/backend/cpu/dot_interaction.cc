#include "backend/cpu/feature_rows.h"

namespace fleet {
namespace {

using cpu::FeatureRows, cpu::kFeatureColumns;

template <typename T>
FLEET_SIMD void dot_products(const FeatureRows& e, const T* x, T* y) {
  for (int64_t i = 1; i < e.features; ++i) {
    for (int64_t j = 0; j < i; ++j, ++y) {
      const T *a = x + i * e.size, *b = x + j * e.size;
      float sum = 0;
#pragma omp simd reduction(+ : sum)
      for (int64_t d = 0; d < e.size; ++d) {
        sum += static_cast<float>(a[d]) * static_cast<float>(b[d]);
      }
      *y = sum;
    }
  }
}

// Adds dy of the pair times the other feature, in the order of the features.
template <typename T>
FLEET_SIMD void dot_gradient(const FeatureRows& e, const T* x, const T* dy, T* dx) {
  const auto pair = [](int64_t i, int64_t j) { return i * (i - 1) / 2 + j; };
  for (int64_t i = 0; i < e.features; ++i) {
    for (int64_t first = 0; first < e.size; first += kFeatureColumns) {
      const int64_t columns = std::min(kFeatureColumns, e.size - first);
      float sums[kFeatureColumns];
      std::fill_n(sums, columns, 0.0f);
      for (int64_t j = 0; j < e.features; ++j) {
        if (j == i) continue;
        const float slope = dy[j < i ? pair(i, j) : pair(j, i)];
        const T* other = x + j * e.size + first;
#pragma omp simd
        for (int64_t d = 0; d < columns; ++d) sums[d] += slope * static_cast<float>(other[d]);
      }
      T* to = dx + i * e.size + first;
#pragma omp simd
      for (int64_t d = 0; d < columns; ++d) to[d] = sums[d];
    }
  }
}

}  // namespace

FLEET_KERNEL(cpu, dot_interaction) {
  def.dtypes = cpu::kLoopTypes;
  def.create = [](KernelContext& context) {
    const FeatureRows rows(context.inputs[0].shape);
    return cpu::with_loop_type(context.inputs[0].dtype, [&]<typename T>(T) {
      const T* x = context.inputs[0].as<const T>();
      T* y = context.outputs[0].as<T>();
      return cpu::make_sample_kernel(rows, [=](int64_t n) {
        dot_products(rows, x + n * rows.sample(), y + n * rows.pairs());
      });
    });
  };
}

FLEET_KERNEL(cpu, dot_interaction_grad) {
  def.dtypes = cpu::kLoopTypes;
  def.create = [](KernelContext& context) {
    const FeatureRows rows(context.inputs[0].shape);
    return cpu::with_loop_type(context.inputs[0].dtype, [&]<typename T>(T) {
      const T *x = context.inputs[0].as<const T>(), *dy = context.inputs[1].as<const T>();
      T* dx = context.outputs[0].as<T>();
      return cpu::make_sample_kernel(rows, [=](int64_t n) {
        const int64_t at = n * rows.sample();
        dot_gradient(rows, x + at, dy + n * rows.pairs(), dx + at);
      });
    });
  };
}

}  // namespace fleet
