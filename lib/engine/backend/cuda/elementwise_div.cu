#include "backend/cuda/broadcast_loops.h"

namespace fleet {
namespace {

struct Divide {
  __device__ float operator()(float x, float y) const { return x / y; }
};

}  // namespace

FLEET_KERNEL(cuda, elementwise_div) {
  def.dtypes = cuda::floating_types();
  def.layouts = [](LayoutQuery& query) {
    cuda::broadcast_layouts(query, query.input_var(1).shape);
  };
  def.create = [](KernelContext& context) { return cuda::broadcast_kernel(context, Divide()); };
}

}  // namespace fleet
