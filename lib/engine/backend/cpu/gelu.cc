#include "backend/cpu/simd_math.h"

namespace fleet {
namespace {

constexpr float kRootHalf = 0.70710678118654752f;   // 1 / sqrt(2)
constexpr float kDensity = 0.39894228040143268f;    // 1 / sqrt(2 pi)
constexpr float kTanhScale = 0.79788456080286536f;  // sqrt(2 / pi)
constexpr float kTanhCube = 0.044715f;

template <typename T>
FLEET_SIMD void gelu(const T* x, T* y, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    y[i] = 0.5f * x[i] * (1 + cpu::fast_erf(x[i] * kRootHalf));
  }
}

template <typename T>
FLEET_SIMD void gelu_grad(const T* x, const T* dy, T* dx, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const float below = 0.5f * (1 + cpu::fast_erf(x[i] * kRootHalf));
    dx[i] = dy[i] * (below + x[i] * kDensity * cpu::fast_exp(-0.5f * x[i] * x[i]));
  }
}

template <typename T>
FLEET_SIMD void gelu_tanh(const T* x, T* y, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const float inner = kTanhScale * (x[i] + kTanhCube * x[i] * x[i] * x[i]);
    y[i] = 0.5f * x[i] * (1 + cpu::fast_tanh(inner));
  }
}

template <typename T>
FLEET_SIMD void gelu_tanh_grad(const T* x, const T* dy, T* dx, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const float square = x[i] * x[i];
    const float t = cpu::fast_tanh(kTanhScale * x[i] * (1 + kTanhCube * square));
    const float slope = kTanhScale * (1 + 3 * kTanhCube * square);
    dx[i] = dy[i] * (0.5f * (1 + t) + 0.5f * x[i] * (1 - t * t) * slope);
  }
}

}  // namespace

FLEET_KERNEL(cpu, gelu) {
  def.dtypes = cpu::kLoopTypes;
  def.layouts = cpu::keep_layout;
  def.create = [](KernelContext& context) {
    return context.attributes().boolean("approximate")
               ? cpu::unary_kernel<gelu_tanh<float>, gelu_tanh<BFloat16>>(context)
               : cpu::unary_kernel<gelu<float>, gelu<BFloat16>>(context);
  };
}

FLEET_KERNEL(cpu, gelu_grad) {
  def.dtypes = cpu::kLoopTypes;
  def.layouts = cpu::keep_layout;
  def.create = [](KernelContext& context) {
    return context.attributes().boolean("approximate")
               ? cpu::binary_kernel<gelu_tanh_grad<float>, gelu_tanh_grad<BFloat16>>(context)
               : cpu::binary_kernel<gelu_grad<float>, gelu_grad<BFloat16>>(context);
  };
}

}  // namespace fleet
