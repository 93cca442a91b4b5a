#include "backend/cpu/optim_update.h"
#include "optim/momentum_rule.h"

namespace fleet {

FLEET_KERNEL(cpu, momentum) {
  def.layouts = cpu::update_layouts;
  def.create = [](KernelContext& context) {
    return context.attributes().boolean("use_nesterov")
               ? cpu::update_kernel<MomentumRule<true>>(context)
               : cpu::update_kernel<MomentumRule<false>>(context);
  };
}

}  // namespace fleet
