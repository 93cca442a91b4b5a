#include "backend/cuda/elementwise.h"

namespace fleet {
namespace {

constexpr float kSixth = 1.0f / 6;

struct HardSigmoid {
  __device__ float operator()(float x) const {
    const float moved = x + 3;
    return (moved < 0 ? 0 : (moved > 6 ? 6 : moved)) * kSixth;
  }
};

struct HardSigmoidGrad {
  __device__ float operator()(float y, float dy) const {
    return y <= 0 || y >= 1 ? 0 : dy * kSixth;
  }
};

}  // namespace

FLEET_KERNEL(cuda, hardsigmoid) { cuda::define_unary<HardSigmoid>(def, /*keeps_zeros=*/false); }

FLEET_KERNEL(cuda, hardsigmoid_grad) { cuda::define_binary<HardSigmoidGrad>(def); }

}  // namespace fleet
