#include "backend/cuda/sums.h"

namespace fleet {

FLEET_KERNEL(cuda, sum) {
  def.dtypes = cuda::floating_types();
  def.layouts = cuda::keep_layout;
  def.create = [](KernelContext& context) {
    return cuda::sum_kernel(context, 0, /*masked=*/false);
  };
}

}  // namespace fleet
