#include "backend/cpu/elementwise.h"
#include "ops/activation_formulas.h"

namespace fleet {

FLEET_KERNEL(cpu, scale) {
  def.dtypes = cpu::kLoopTypes;
  def.layouts = [](LayoutQuery& query) {
    same_layout(query, /*keeps_zeros=*/query.attributes().number("bias") == 0);
  };
  def.create = [](KernelContext& context) {
    return cpu::unary_kernel(context, Scale(context.attributes()));
  };
}

}  // namespace fleet
