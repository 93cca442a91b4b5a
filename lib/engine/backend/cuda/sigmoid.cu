#include "backend/cuda/elementwise.h"

namespace fleet {
namespace {

struct Sigmoid {
  __device__ float operator()(float x) const { return 1 / (1 + expf(-x)); }
};

struct SigmoidGrad {
  __device__ float operator()(float y, float dy) const { return dy * y * (1 - y); }
};

}  // namespace

FLEET_KERNEL(cuda, sigmoid) { cuda::define_unary<Sigmoid>(def, /*keeps_zeros=*/false); }

FLEET_KERNEL(cuda, sigmoid_grad) { cuda::define_binary<SigmoidGrad>(def); }

}  // namespace fleet
