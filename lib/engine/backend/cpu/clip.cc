#include "backend/cpu/elementwise.h"
#include "ops/activation_formulas.h"

namespace fleet {

FLEET_KERNEL(cpu, clip) {
  def.dtypes = cpu::kLoopTypes;
  def.layouts = [](LayoutQuery& query) {
    const Clip bounds(query.attributes());
    same_layout(query, /*keeps_zeros=*/bounds.min <= 0 && bounds.max >= 0);
  };
  def.create = [](KernelContext& context) {
    return cpu::unary_kernel(context, Clip(context.attributes()));
  };
}

FLEET_KERNEL(cpu, clip_grad) {
  def.dtypes = cpu::kLoopTypes;
  def.layouts = cpu::keep_layout;
  def.create = [](KernelContext& context) {
    return cpu::binary_kernel(context, ClipGrad{Clip(context.attributes())});
  };
}

}  // namespace fleet
