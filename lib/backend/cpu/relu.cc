#include "backend/cpu/elementwise.h"

namespace fleet {
namespace {

FLEET_SIMD void relu(const float* x, float* y, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) y[i] = cpu::where_positive(x[i], x[i]);
}

FLEET_SIMD void relu_grad(const float* y, const float* dy, float* dx, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) dx[i] = cpu::where_positive(y[i], dy[i]);
}

}  // namespace

FLEET_KERNEL(cpu, relu) {
  def.layouts = cpu::keep_layout;
  def.create = cpu::unary_kernel<relu>;
}

FLEET_KERNEL(cpu, relu_grad) {
  def.layouts = cpu::keep_layout;
  def.create = cpu::binary_kernel<relu_grad>;
}

}  // namespace fleet
