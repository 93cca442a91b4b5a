#include "backend/cpu/class_losses.h"
#include "ops/binary_cross_entropy.h"

namespace fleet {

FLEET_KERNEL(cpu, sigmoid_cross_entropy) {
  def.create = [](KernelContext& context) {
    return cpu::class_losses(context.inputs[0], context.inputs[1], context.outputs[0],
                             BinaryCrossEntropy());
  };
}

FLEET_KERNEL(cpu, sigmoid_cross_entropy_grad) {
  def.create = [](KernelContext& context) {
    return cpu::class_loss_gradients(context.inputs[0], context.inputs[1], context.inputs[2],
                                     context.outputs[0], BinaryCrossEntropy());
  };
}

}  // namespace fleet
