// Cross entropy of softmax: of one class of each sample, of two with shares, or of a distribution.
#include "models/losses.h"

namespace fleet {
namespace {

// With two labels for each sample, the loss of a sample is own_share * loss(label) + (1 -
// own_share) * loss(other_label). The metrics count hits of `label`.
SampleLosses append_mixed_label_losses(TaskBuilder& task) {
  const SampleLosses own = append_label_losses(task, task.feed("label"), ignored_label(task));
  const SampleLosses other =
      append_label_losses(task, task.feed("other_label"), ignored_label(task), "other_");
  // other + share * (own - other)
  const auto mixed = [&](VarId a, VarId b, const std::string& name) {
    const VarId distance = task.emit("elementwise_sub", {a, b}, {}, name + "_distance");
    const VarId part =
        task.emit("elementwise_mul", {distance, task.feed("own_share")}, {}, name + "_part");
    return task.emit("elementwise_add", {b, part}, {}, name);
  };
  SampleLosses losses{mixed(own.values, other.values, "mixed_losses")};
  if (own.weights != kNoVar) losses.weights = mixed(own.weights, other.weights, "mixed_weights");
  return losses;
}

SampleLosses append_cross_entropy(TaskBuilder& task) {
  if (task.feed(kLabelShares) != kNoVar) {
    const LabelTargets targets = label_targets(task);
    return {task.emit("soft_cross_entropy", {task.output("logits"), targets.shares},
                      {{"label_smoothing", 1 - targets.scale}}, "sample_losses")};
  }
  const bool mixed = task.training() && task.context().options.mixed_labels;
  return mixed ? append_mixed_label_losses(task)
               : append_label_losses(task, task.feed("label"), ignored_label(task));
}

}  // namespace

FLEET_LOSS(cross_entropy) {
  def.help = "of the softmax of the logits";
  def.shared_keys = {label_smoothing_key, class_weights_keys};
  def.of_labels = append_cross_entropy;
}

}  // namespace fleet
