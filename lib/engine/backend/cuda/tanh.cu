#include "backend/cuda/elementwise.h"

namespace fleet {
namespace {

struct Tanh {
  __device__ float operator()(float x) const { return tanhf(x); }
};

struct TanhGrad {
  __device__ float operator()(float y, float dy) const { return dy * (1 - y * y); }
};

}  // namespace

FLEET_KERNEL(cuda, tanh) { cuda::define_unary<Tanh>(def); }

FLEET_KERNEL(cuda, tanh_grad) { cuda::define_binary<TanhGrad>(def); }

}  // namespace fleet
