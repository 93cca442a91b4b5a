// relu and its gradient, computed from the output. NaN passes, as in PyTorch.
#include "backend/cuda/elementwise.h"

namespace fleet {
namespace {

struct Relu {
  __device__ float operator()(float x) const { return x <= 0 ? 0 : x; }
};

struct ReluGrad {
  __device__ float operator()(float y, float dy) const { return y <= 0 ? 0 : dy; }
};

}  // namespace

FLEET_KERNEL(cuda, relu) { cuda::define_unary<Relu>(def); }

FLEET_KERNEL(cuda, relu_grad) { cuda::define_binary<ReluGrad>(def); }

}  // namespace fleet
