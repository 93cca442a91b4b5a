#include "backend/cpu/elementwise.h"
#include "ops/smooth_l1_formula.h"

namespace fleet {

FLEET_KERNEL(cpu, smooth_l1) {
  def.dtypes = cpu::kLoopTypes;
  def.layouts = cpu::keep_layout;
  def.create = [](KernelContext& context) {
    return cpu::unary_kernel(context, SmoothL1(context.attributes()));
  };
}

FLEET_KERNEL(cpu, smooth_l1_grad) {
  def.dtypes = cpu::kLoopTypes;
  def.layouts = cpu::keep_layout;
  def.create = [](KernelContext& context) {
    return cpu::binary_kernel(context, SmoothL1Grad(context.attributes()));
  };
}

}  // namespace fleet
