#include "backend/cuda/elementwise.h"
#include "ops/smooth_l1_formula.h"

namespace fleet {

FLEET_KERNEL(cuda, smooth_l1) {
  def.dtypes = cuda::floating_types();
  def.layouts = cuda::keep_layout;
  def.create = [](KernelContext& context) {
    return cuda::unary_kernel(context, SmoothL1(context.attributes()));
  };
}

FLEET_KERNEL(cuda, smooth_l1_grad) {
  def.dtypes = cuda::floating_types();
  def.layouts = cuda::keep_layout;
  def.create = [](KernelContext& context) {
    return cuda::binary_kernel(context, SmoothL1Grad(context.attributes()));
  };
}

}  // namespace fleet
