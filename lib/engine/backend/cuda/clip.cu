#include "backend/cuda/elementwise.h"
#include "ops/activation_formulas.h"

namespace fleet {

FLEET_KERNEL(cuda, clip) {
  def.dtypes = cuda::floating_types();
  def.layouts = [](LayoutQuery& query) {
    const Clip bounds(query.attributes());
    same_layout(query, /*keeps_zeros=*/bounds.min <= 0 && bounds.max >= 0);
  };
  def.create = [](KernelContext& context) {
    return cuda::unary_kernel(context, Clip(context.attributes()));
  };
}

FLEET_KERNEL(cuda, clip_grad) {
  def.dtypes = cuda::floating_types();
  def.layouts = cuda::keep_layout;
  def.create = [](KernelContext& context) {
    return cuda::binary_kernel(context, ClipGrad{Clip(context.attributes())});
  };
}

}  // namespace fleet
