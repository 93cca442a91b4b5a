#include "backend/cpu/elementwise.h"

namespace fleet {
namespace {

template <typename T>
FLEET_SIMD void relu6(const T* x, T* y, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const float value = x[i];
    y[i] = value < 0 ? 0.0f : (value > 6 ? 6.0f : value);
  }
}

template <typename T>
FLEET_SIMD void relu6_grad(const T* y, const T* dy, T* dx, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const float slope = ((y[i] <= 0) | (y[i] >= 6)) ? 0.0f : 1.0f;  // 1 where y is NaN
    dx[i] = slope * dy[i];
  }
}

}  // namespace

FLEET_KERNEL(cpu, relu6) {
  def.dtypes = cpu::kLoopTypes;
  def.layouts = cpu::keep_layout;
  def.create = cpu::unary_kernel<relu6<float>, relu6<BFloat16>>;
}

FLEET_KERNEL(cpu, relu6_grad) {
  def.dtypes = cpu::kLoopTypes;
  def.layouts = cpu::keep_layout;
  def.create = cpu::binary_kernel<relu6_grad<float>, relu6_grad<BFloat16>>;
}

}  // namespace fleet
