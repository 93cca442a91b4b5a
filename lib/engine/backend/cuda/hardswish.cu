#include "backend/cuda/elementwise.h"

namespace fleet {
namespace {

constexpr float kSixth = 1.0f / 6, kThird = 1.0f / 3;

struct HardSwish {
  __device__ float operator()(float x) const {
    const float moved = x + 3;
    return x * (moved < 0 ? 0 : (moved > 6 ? 6 : moved)) * kSixth;
  }
};

struct HardSwishGrad {
  __device__ float operator()(float x, float dy) const {
    if (x <= -3) return 0;
    return x >= 3 ? dy : dy * (x * kThird + 0.5f);
  }
};

}  // namespace

FLEET_KERNEL(cuda, hardswish) { cuda::define_unary<HardSwish>(def); }

FLEET_KERNEL(cuda, hardswish_grad) { cuda::define_binary<HardSwishGrad>(def); }

}  // namespace fleet
