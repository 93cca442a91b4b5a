#include "backend/cpu/simd_math.h"

namespace fleet {
namespace {

template <typename T>
FLEET_SIMD void tanh(const T* x, T* y, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) y[i] = cpu::fast_tanh(x[i]);
}

template <typename T>
FLEET_SIMD void tanh_grad(const T* y, const T* dy, T* dx, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) dx[i] = dy[i] * (1 - y[i] * y[i]);
}

}  // namespace

FLEET_KERNEL(cpu, tanh) {
  def.dtypes = cpu::kLoopTypes;
  def.layouts = cpu::keep_layout;
  def.create = cpu::unary_kernel<tanh<float>, tanh<BFloat16>>;
}

FLEET_KERNEL(cpu, tanh_grad) {
  def.dtypes = cpu::kLoopTypes;
  def.layouts = cpu::keep_layout;
  def.create = cpu::binary_kernel<tanh_grad<float>, tanh_grad<BFloat16>>;
}

}  // namespace fleet
