#include "backend/cpu/elementwise.h"

namespace fleet {
namespace {

template <typename T>
FLEET_SIMD void relu(const T* x, T* y, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) y[i] = cpu::where_positive(x[i], x[i]);
}

template <typename T>
FLEET_SIMD void relu_grad(const T* y, const T* dy, T* dx, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) dx[i] = cpu::where_positive(y[i], dy[i]);
}

}  // namespace

FLEET_KERNEL(cpu, relu) {
  def.dtypes = cpu::kLoopTypes;
  def.layouts = cpu::keep_layout;
  def.create = cpu::unary_kernel<relu<float>, relu<BFloat16>>;
}

FLEET_KERNEL(cpu, relu_grad) {
  def.dtypes = cpu::kLoopTypes;
  def.layouts = cpu::keep_layout;
  def.create = cpu::binary_kernel<relu_grad<float>, relu_grad<BFloat16>>;
}

}  // namespace fleet
