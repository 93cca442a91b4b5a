#include "backend/cuda/elementwise.h"

namespace fleet {
namespace {

struct Silu {
  __device__ float operator()(float x) const { return x / (1 + expf(-x)); }
};

struct SiluGrad {
  __device__ float operator()(float x, float dy) const {
    const float s = 1 / (1 + expf(-x));
    return dy * s * (x * (1 - s) + 1);
  }
};

}  // namespace

FLEET_KERNEL(cuda, silu) { cuda::define_unary<Silu>(def); }

FLEET_KERNEL(cuda, silu_grad) { cuda::define_binary<SiluGrad>(def); }

}  // namespace fleet
