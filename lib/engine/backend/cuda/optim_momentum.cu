#include "backend/cuda/optim_update.h"
#include "optim/momentum_rule.h"

namespace fleet {

FLEET_KERNEL(cuda, momentum) {
  def.layouts = update_layouts<LayoutQuery>;
  def.create = [](KernelContext& context) {
    return context.attributes().boolean("use_nesterov")
               ? cuda::update_kernel<MomentumRule<true>>(context)
               : cuda::update_kernel<MomentumRule<false>>(context);
  };
}

}  // namespace fleet
