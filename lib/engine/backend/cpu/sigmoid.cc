#include "backend/cpu/simd_math.h"

namespace fleet {
namespace {

template <typename T>
FLEET_SIMD void sigmoid(const T* x, T* y, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) y[i] = cpu::fast_sigmoid(x[i]);
}

template <typename T>
FLEET_SIMD void sigmoid_grad(const T* y, const T* dy, T* dx, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) dx[i] = dy[i] * y[i] * (1 - y[i]);
}

}  // namespace

FLEET_KERNEL(cpu, sigmoid) {
  def.dtypes = cpu::kLoopTypes;
  def.layouts = cpu::keep_unpadded_layout;
  def.create = cpu::unary_kernel<sigmoid<float>, sigmoid<BFloat16>>;
}

FLEET_KERNEL(cpu, sigmoid_grad) {
  def.dtypes = cpu::kLoopTypes;
  def.layouts = cpu::keep_layout;
  def.create = cpu::binary_kernel<sigmoid_grad<float>, sigmoid_grad<BFloat16>>;
}

}  // namespace fleet
