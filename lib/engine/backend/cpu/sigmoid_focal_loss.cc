#include "backend/cpu/class_losses.h"
#include "ops/focal_loss.h"

namespace fleet {

static WeightedFocalLoss focal_loss_of(const KernelContext& context) {
  const Argument weights = context.inputs.size() > 2 ? context.inputs[2] : Argument();
  return {context.attributes(), weights.data ? weights.as<float>() : nullptr, weights.shape};
}

FLEET_KERNEL(cpu, sigmoid_focal_loss) {
  def.create = [](KernelContext& context) {
    return cpu::class_losses(context.inputs[0], context.inputs[1], context.outputs[0],
                             focal_loss_of(context));
  };
}

FLEET_KERNEL(cpu, sigmoid_focal_loss_grad) {
  def.create = [](KernelContext& context) {
    return cpu::class_loss_gradients(context.inputs[0], context.inputs[1], context.inputs[3],
                                     context.outputs[0], focal_loss_of(context));
  };
}

}  // namespace fleet
