#include "backend/cpu/elementwise.h"

namespace fleet {
namespace {

FLEET_SIMD void relu6(const float* x, float* y, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) y[i] = x[i] < 0 ? 0 : (x[i] > 6 ? 6 : x[i]);
}

FLEET_SIMD void relu6_grad(const float* y, const float* dy, float* dx, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const float slope = (y[i] > 0) & (y[i] < 6) ? 1.0f : 0.0f;
    dx[i] = slope * dy[i];
  }
}

}  // namespace

FLEET_KERNEL(cpu, relu6) {
  def.layouts = cpu::keep_layout;
  def.create = cpu::unary_kernel<relu6>;
}

FLEET_KERNEL(cpu, relu6_grad) {
  def.layouts = cpu::keep_layout;
  def.create = cpu::binary_kernel<relu6_grad>;
}

}  // namespace fleet
