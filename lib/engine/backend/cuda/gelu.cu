#include "backend/cuda/elementwise.h"

namespace fleet {
namespace {

constexpr float kRootHalf = 0.70710678118654752f;   // 1 / sqrt(2)
constexpr float kDensity = 0.39894228040143268f;    // 1 / sqrt(2 pi)
constexpr float kTanhScale = 0.79788456080286536f;  // sqrt(2 / pi)
constexpr float kTanhCube = 0.044715f;

struct Gelu {
  __device__ float operator()(float x) const { return 0.5f * x * (1 + erff(x * kRootHalf)); }
};

struct GeluGrad {
  __device__ float operator()(float x, float dy) const {
    const float below = 0.5f * (1 + erff(x * kRootHalf));
    return dy * (below + x * kDensity * expf(-0.5f * x * x));
  }
};

struct GeluTanh {
  __device__ float operator()(float x) const {
    return 0.5f * x * (1 + tanhf(kTanhScale * (x + kTanhCube * x * x * x)));
  }
};

struct GeluTanhGrad {
  __device__ float operator()(float x, float dy) const {
    const float square = x * x;
    const float t = tanhf(kTanhScale * x * (1 + kTanhCube * square));
    const float slope = kTanhScale * (1 + 3 * kTanhCube * square);
    return dy * (0.5f * (1 + t) + 0.5f * x * (1 - t * t) * slope);
  }
};

}  // namespace

FLEET_KERNEL(cuda, gelu) {
  def.dtypes = cuda::floating_types();
  def.layouts = cuda::keep_layout;
  def.create = [](KernelContext& context) {
    return context.attributes().boolean("approximate") ? cuda::unary_kernel(context, GeluTanh())
                                                       : cuda::unary_kernel(context, Gelu());
  };
}

FLEET_KERNEL(cuda, gelu_grad) {
  def.dtypes = cuda::floating_types();
  def.layouts = cuda::keep_layout;
  def.create = [](KernelContext& context) {
    return context.attributes().boolean("approximate")
               ? cuda::binary_kernel(context, GeluTanhGrad())
               : cuda::binary_kernel(context, GeluGrad());
  };
}

}  // namespace fleet
