#include "backend/cuda/elementwise.h"

namespace fleet {
namespace {

struct Relu6 {
  __device__ float operator()(float x) const { return x < 0 ? 0 : (x > 6 ? 6 : x); }
};

struct Relu6Grad {
  __device__ float operator()(float y, float dy) const { return y <= 0 || y >= 6 ? 0 : dy; }
};

}  // namespace

FLEET_KERNEL(cuda, relu6) { cuda::define_unary<Relu6>(def); }

FLEET_KERNEL(cuda, relu6_grad) { cuda::define_binary<Relu6Grad>(def); }

}  // namespace fleet
