#include "backend/cpu/feature_rows.h"

namespace fleet {
namespace {

using cpu::FeatureRows, cpu::kFeatureColumns;

// The sums over a sample's features, from a column on, and those of their squares.
template <typename T>
FLEET_SIMD void sum_features(const FeatureRows& e, const T* x, int64_t columns, float* sums,
                             float* squares) {
  std::fill_n(sums, columns, 0.0f);
  std::fill_n(squares, columns, 0.0f);
  for (int64_t f = 0; f < e.features; ++f) {
    const T* own = x + f * e.size;
#pragma omp simd
    for (int64_t d = 0; d < columns; ++d) {
      const float value = own[d];
      sums[d] += value;
      squares[d] += value * value;
    }
  }
}

template <typename T>
float interaction(const FeatureRows& e, const T* x) {
  float total = 0;
  for (int64_t first = 0; first < e.size; first += kFeatureColumns) {
    const int64_t columns = std::min(kFeatureColumns, e.size - first);
    float sums[kFeatureColumns], squares[kFeatureColumns];
    sum_features(e, x + first, columns, sums, squares);
    for (int64_t d = 0; d < columns; ++d) total += sums[d] * sums[d] - squares[d];
  }
  return total / 2;
}

template <typename T>
FLEET_SIMD void interaction_gradient(const FeatureRows& e, const T* x, float dy, T* dx) {
  for (int64_t first = 0; first < e.size; first += kFeatureColumns) {
    const int64_t columns = std::min(kFeatureColumns, e.size - first);
    float sums[kFeatureColumns], squares[kFeatureColumns];
    sum_features(e, x + first, columns, sums, squares);
    for (int64_t f = 0; f < e.features; ++f) {
      const T* from = x + f * e.size + first;
      T* to = dx + f * e.size + first;
#pragma omp simd
      for (int64_t d = 0; d < columns; ++d) to[d] = dy * (sums[d] - static_cast<float>(from[d]));
    }
  }
}

}  // namespace

FLEET_KERNEL(cpu, fm_interaction) {
  def.dtypes = cpu::kLoopTypes;
  def.create = [](KernelContext& context) {
    const FeatureRows rows(context.inputs[0].shape);
    return cpu::with_loop_type(context.inputs[0].dtype, [&]<typename T>(T) {
      const T* x = context.inputs[0].as<const T>();
      T* y = context.outputs[0].as<T>();
      return cpu::make_sample_kernel(
          rows, [=](int64_t n) { y[n] = interaction(rows, x + n * rows.sample()); });
    });
  };
}

FLEET_KERNEL(cpu, fm_interaction_grad) {
  def.dtypes = cpu::kLoopTypes;
  def.create = [](KernelContext& context) {
    const FeatureRows rows(context.inputs[0].shape);
    return cpu::with_loop_type(context.inputs[0].dtype, [&]<typename T>(T) {
      const T *x = context.inputs[0].as<const T>(), *dy = context.inputs[1].as<const T>();
      T* dx = context.outputs[0].as<T>();
      return cpu::make_sample_kernel(rows, [=](int64_t n) {
        const int64_t at = n * rows.sample();
        interaction_gradient(rows, x + at, static_cast<float>(dy[n]), dx + at);
      });
    });
  };
}

}  // namespace fleet
