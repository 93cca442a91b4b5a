#include "backend/cpu/simd_math.h"

namespace fleet {
namespace {

template <typename T>
FLEET_SIMD void silu(const T* x, T* y, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) y[i] = x[i] * cpu::fast_sigmoid(x[i]);
}

template <typename T>
FLEET_SIMD void silu_grad(const T* x, const T* dy, T* dx, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const float s = cpu::fast_sigmoid(x[i]);
    dx[i] = dy[i] * s * (x[i] * (1 - s) + 1);
  }
}

}  // namespace

FLEET_KERNEL(cpu, silu) {
  def.dtypes = cpu::kLoopTypes;
  def.layouts = cpu::keep_layout;
  def.create = cpu::unary_kernel<silu<float>, silu<BFloat16>>;
}

FLEET_KERNEL(cpu, silu_grad) {
  def.dtypes = cpu::kLoopTypes;
  def.layouts = cpu::keep_layout;
  def.create = cpu::binary_kernel<silu_grad<float>, silu_grad<BFloat16>>;
}

}  // namespace fleet
