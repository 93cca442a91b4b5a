#include "backend/cpu/elementwise.h"

namespace fleet {
namespace {

constexpr float kSixth = 1.0f / 6;

template <typename T>
FLEET_SIMD void hardsigmoid(const T* x, T* y, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const float moved = x[i] + 3;
    y[i] = (moved < 0 ? 0.0f : (moved > 6 ? 6.0f : moved)) * kSixth;
  }
}

template <typename T>
FLEET_SIMD void hardsigmoid_grad(const T* y, const T* dy, T* dx, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const float slope = ((y[i] <= 0) | (y[i] >= 1)) ? 0.0f : kSixth;
    dx[i] = slope * dy[i];
  }
}

}  // namespace

FLEET_KERNEL(cpu, hardsigmoid) {
  def.dtypes = cpu::kLoopTypes;
  def.layouts = cpu::keep_unpadded_layout;
  def.create = cpu::unary_kernel<hardsigmoid<float>, hardsigmoid<BFloat16>>;
}

FLEET_KERNEL(cpu, hardsigmoid_grad) {
  def.dtypes = cpu::kLoopTypes;
  def.layouts = cpu::keep_layout;
  def.create = cpu::binary_kernel<hardsigmoid_grad<float>, hardsigmoid_grad<BFloat16>>;
}

}  // namespace fleet
