#include "backend/cpu/elementwise.h"

namespace fleet {
namespace {

constexpr float kSixth = 1.0f / 6, kThird = 1.0f / 3;

template <typename T>
FLEET_SIMD void hardswish(const T* x, T* y, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const float value = x[i], moved = value + 3;
    y[i] = value * (moved < 0 ? 0.0f : (moved > 6 ? 6.0f : moved)) * kSixth;
  }
}

template <typename T>
FLEET_SIMD void hardswish_grad(const T* x, const T* dy, T* dx, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const float value = x[i];
    const float within = value * kThird + 0.5f;
    const float slope = value <= -3 ? 0.0f : (value >= 3 ? 1.0f : within);
    dx[i] = slope * dy[i];
  }
}

}  // namespace

FLEET_KERNEL(cpu, hardswish) {
  def.dtypes = cpu::kLoopTypes;
  def.layouts = cpu::keep_layout;
  def.create = cpu::unary_kernel<hardswish<float>, hardswish<BFloat16>>;
}

FLEET_KERNEL(cpu, hardswish_grad) {
  def.dtypes = cpu::kLoopTypes;
  def.layouts = cpu::keep_layout;
  def.create = cpu::binary_kernel<hardswish_grad<float>, hardswish_grad<BFloat16>>;
}

}  // namespace fleet
