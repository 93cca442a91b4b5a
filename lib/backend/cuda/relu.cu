// relu and its gradient, which is taken from the output.
#include "backend/cuda/elementwise.h"

namespace fleet {
namespace {

struct Relu {
  __device__ float operator()(float x) const { return x > 0 ? x : 0; }
};

struct ReluGrad {
  __device__ float operator()(float y, float dy) const { return y > 0 ? dy : 0; }
};

}  // namespace

FLEET_KERNEL(cuda, relu) { cuda::define_unary<Relu>(def); }

FLEET_KERNEL(cuda, relu_grad) { cuda::define_binary<ReluGrad>(def); }

}  // namespace fleet
