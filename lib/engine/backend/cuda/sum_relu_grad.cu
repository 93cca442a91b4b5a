#include "backend/cuda/sums.h"

namespace fleet {

FLEET_KERNEL(cuda, sum_relu_grad) {
  def.dtypes = cuda::floating_types();
  def.layouts = cuda::keep_layout;
  def.create = [](KernelContext& context) { return cuda::sum_kernel(context, 1, /*masked=*/true); };
}

}  // namespace fleet
