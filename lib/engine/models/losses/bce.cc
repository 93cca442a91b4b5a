// Binary cross entropy of each class, as PyTorch's BCEWithLogitsLoss and timm's
// BinaryCrossEntropy: with a label per sample, the targets are label_smoothing / classes, and 1 -
// label_smoothing + label_smoothing / classes of the label; with several, each is moved towards
// 1/2.
#include "base/error.h"
#include "models/losses.h"

namespace fleet {
namespace {

// The state that holds train.positive_weights; kNoVar without them.
VarId positive_weights(TaskBuilder& task) {
  const auto count = std::ssize(task.settings().numbers("positive_weights"));
  if (count == 0) return kNoVar;
  const int64_t classes = task.context().classes();
  if (count != 1 && count != classes) {
    throw Error(ErrorCode::kUsage,
                std::to_string(count) + " weights, and the model has " + std::to_string(classes) +
                    " classes",
                "train.positive_weights", "give one for each class, or one for all");
  }
  for (const double weight : task.settings().numbers("positive_weights")) {
    if (weight >= 0) continue;
    throw Error(ErrorCode::kUsage, "a weight is below 0", "train.positive_weights",
                "give numbers of 0 or more");
  }
  const VarId known = task.program().find(kPositiveWeights);
  return known != kNoVar ? known : task.program().state(kPositiveWeights, {count}, {});
}

VarId append_bce(TaskBuilder& task, const LabelTargets& targets) {
  const Settings& settings = task.settings();
  std::vector<VarId> inputs = {task.output("logits"), targets.shares};
  if (const VarId weights = positive_weights(task); weights != kNoVar) inputs.push_back(weights);
  const double threshold = settings.number("bce_target_threshold");
  VarId losses = kNoVar;
  const bool plain = inputs.size() == 2 && threshold < 0 && targets.scale == 1;
  if (plain) {
    losses = task.emit("sigmoid_cross_entropy", inputs, {}, "sample_losses");
  } else {
    losses = task.emit("sigmoid_focal_loss", inputs,
                       {{"target_scale", targets.scale},
                        {"target_bias", targets.bias},
                        {"target_threshold", threshold}},
                       "sample_losses");
  }
  if (!settings.boolean("bce_sum")) return losses;
  const auto classes = static_cast<double>(task.context().classes());
  return task.emit("scale", {losses}, {{"scale", classes}}, "summed_losses");
}

}  // namespace

FLEET_LOSS(bce) {
  def.help = "binary cross entropy of each class";
  def.schema
      .number("bce_target_threshold", -1, -1, 1,
              "targets above it count as 1, and others as 0 (timm's --bce-target-thresh); below 0: "
              "targets stay as smoothing and mixed images make them")
      .boolean("bce_sum", false,
               "the loss of a sample is the sum over the classes, not their mean (timm's "
               "--bce-sum)");
  def.shared_keys = {label_smoothing_key, positive_weights_key};
  def.of_labels = [](TaskBuilder& task) -> SampleLosses {
    const LabelTargets targets = label_targets(task);
    return {counted_losses(task, append_bce(task, targets), targets)};
  };
  def.of_targets = [](TaskBuilder& task) {
    const double smoothing = task.settings().number("label_smoothing");
    return append_bce(
        task, {.shares = task.feed("targets"), .scale = 1 - smoothing, .bias = smoothing / 2});
  };
}

}  // namespace fleet
