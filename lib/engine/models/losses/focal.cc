// Focal loss (Lin et al. 2017): binary cross entropy that counts well-predicted classes less, as
// torchvision's sigmoid_focal_loss.
#include "models/losses.h"

namespace fleet {

static VarId append_focal(TaskBuilder& task, VarId targets) {
  return task.emit("sigmoid_focal_loss", {task.output("logits"), targets},
                   {{"alpha", task.settings().number("focal_alpha")},
                    {"gamma", task.settings().number("focal_gamma")}},
                   "sample_losses");
}

FLEET_LOSS(focal) {
  def.help = "focal loss, binary cross entropy that counts well-predicted classes less";
  def.schema
      .number("focal_alpha", 0.25, -1, 1,
              "weight of present classes in the focal loss, and 1 - focal_alpha of absent ones; "
              "below 0: both count 1")
      .number("focal_gamma", 2, 0, 100,
              "exponent of the focal loss: a class counts (1 - p)^focal_gamma, p the probability "
              "of its target");
  def.of_labels = [](TaskBuilder& task) -> SampleLosses {
    const LabelTargets targets = label_targets(task);
    return {counted_losses(task, append_focal(task, targets.shares), targets)};
  };
  def.of_targets = [](TaskBuilder& task) { return append_focal(task, task.feed("targets")); };
}

}  // namespace fleet
