// multi_label: several labels per image; binary cross entropy of each class or focal loss, mean
// average precision.
//
// The loss of a rank is the mean over all N samples of its batch and over the classes. Padded
// samples count too, so that every rank divides by the same number.
#include <cmath>

#include "base/error.h"
#include "models/class_scores.h"
#include "models/label_metrics.h"
#include "models/losses.h"
#include "models/task.h"

namespace fleet {
namespace {

std::vector<FeedDef> label_feeds(const TaskContext& context) {
  if (context.options.mixed_labels) {
    throw Error(ErrorCode::kUsage, "cannot mix images with several labels",
                "data.augment (mixup_alpha, cutmix_alpha)", "set both to 0");
  }
  loss_of(context);  // checks the keys of losses
  const Shape targets = context.shape("targets");
  const int64_t classes = context.classes();
  if (targets != Shape{context.batch(), classes}) {
    throw Error(ErrorCode::kUsage,
                "the data have targets " + targets.text() + ", and the model has " +
                    std::to_string(classes) + " classes",
                "model.num_classes", "make them equal");
  }
  return {{"targets", DType::kFloat32, targets}, {"weight", DType::kFloat32, {context.batch()}}};
}

MetricTable metrics_of_labels(const TaskContext& context) {
  MetricTable table{.sums = {"loss", "weight"}, .headline = "mAP", .items = "weight"};
  table.metrics = {{.name = "loss", .sum = "loss", .divisor = "weight"},
                   {.name = "mAP", .larger_is_better = true, .collected = true}};
  add_named_metrics(context, MetricInput::kLabels, &table);
  return table;
}

void build_labels(TaskBuilder& task) {
  check_class_scores(task);
  const VarId losses = loss_of(task.context()).of_targets(task);
  if (task.training()) task.set_loss(task.emit("mean", {losses}, {}, "loss"));
  task.add_sums("losses", {"loss", "weight"}, "weighted_sum", {losses, task.feed("weight")});
}

}  // namespace

FLEET_TASK_LOSSES(multi_label) { def = {LossInput::kTargets, "bce"}; }

FLEET_TASK(multi_label) {
  def.help = "several labels per image: binary cross entropy, mean average precision";
  metrics_key(&def.schema, MetricInput::kLabels, {});
  def.schema.boolean("evaluate_classes", false, kEvaluateClassesHelp);
  def.outputs = {"logits"};
  def.feeds = label_feeds;
  def.metrics = metrics_of_labels;
  def.build = build_labels;
  def.collector = [](const TaskContext& context) { return label_metrics(context, {"mAP"}); };
  def.probabilities = [](std::span<const float> logits, std::span<double> probabilities) {
    for (size_t c = 0; c < logits.size(); ++c) {
      probabilities[c] = 1 / (1 + std::exp(-static_cast<double>(logits[c])));
    }
  };
}

}  // namespace fleet
