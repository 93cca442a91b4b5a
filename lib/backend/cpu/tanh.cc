#include "backend/cpu/simd_math.h"

namespace fleet {
namespace {

FLEET_SIMD void tanh(const float* x, float* y, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) y[i] = cpu::fast_tanh(x[i]);
}

FLEET_SIMD void tanh_grad(const float* y, const float* dy, float* dx, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) dx[i] = dy[i] * (1 - y[i] * y[i]);
}

}  // namespace

FLEET_KERNEL(cpu, tanh) {
  def.layouts = cpu::keep_layout;
  def.create = cpu::unary_kernel<tanh>;
}

FLEET_KERNEL(cpu, tanh_grad) {
  def.layouts = cpu::keep_layout;
  def.create = cpu::binary_kernel<tanh_grad>;
}

}  // namespace fleet
