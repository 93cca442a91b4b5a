#include "backend/cuda/reduce.h"

namespace fleet {
namespace {

struct Square {
  __device__ float operator()(float x) const { return x * x; }
};

}  // namespace

FLEET_KERNEL(cuda, sum_of_squares) {
  def.dtypes = cuda::floating_types();
  def.layouts = cuda::reduce_layouts;
  def.create = [](KernelContext& context) { return cuda::reduce_kernel(context, Square(), 1); };
}

}  // namespace fleet
