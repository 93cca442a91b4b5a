#include "backend/cpu/simd_math.h"

namespace fleet {
namespace {

FLEET_SIMD void sigmoid(const float* x, float* y, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) y[i] = cpu::fast_sigmoid(x[i]);
}

FLEET_SIMD void sigmoid_grad(const float* y, const float* dy, float* dx, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) dx[i] = dy[i] * y[i] * (1 - y[i]);
}

}  // namespace

FLEET_KERNEL(cpu, sigmoid) {
  def.layouts = cpu::keep_unpadded_layout;
  def.create = cpu::unary_kernel<sigmoid>;
}

FLEET_KERNEL(cpu, sigmoid_grad) {
  def.layouts = cpu::keep_layout;
  def.create = cpu::binary_kernel<sigmoid_grad>;
}

}  // namespace fleet
