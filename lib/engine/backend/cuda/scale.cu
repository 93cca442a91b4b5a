#include "backend/cuda/elementwise.h"
#include "ops/activation_formulas.h"

namespace fleet {

FLEET_KERNEL(cuda, scale) {
  def.dtypes = cuda::floating_types();
  def.layouts = [](LayoutQuery& query) {
    same_layout(query, /*keeps_zeros=*/query.attributes().number("bias") == 0);
  };
  def.create = [](KernelContext& context) {
    return cuda::unary_kernel(context, Scale(context.attributes()));
  };
}

}  // namespace fleet
