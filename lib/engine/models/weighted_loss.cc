#include "models/weighted_loss.h"

namespace fleet {

VarId divided_loss(TaskBuilder& task, VarId losses, VarId weight, const std::string& divisor) {
  const VarId counted = task.emit("elementwise_mul", {losses, weight}, {}, "counted_losses");
  const VarId mean = task.emit("mean", {counted}, {}, "mean_loss");
  // A micro-batch has a part of the batch, and their losses are averaged.
  const auto scale = static_cast<double>(task.var(losses).shape.elements()) *
                     static_cast<double>(task.context().options.micro_batches);
  const VarId sum = task.emit("scale", {mean}, {{"scale", scale}}, "loss_sum");
  return task.emit("elementwise_div", {sum, task.feed(divisor)}, {}, "loss");
}

}  // namespace fleet
