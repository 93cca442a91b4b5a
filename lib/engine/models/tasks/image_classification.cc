// image_classification: one label per image; cross entropy of the logits, top-1 and top-5 accuracy.
//
// The loss of a rank is the mean over all N samples of its batch. Padded samples count too, so that
// every rank divides by the same number. With class weights it is the mean of the weighted losses,
// with weights that the pipeline scales for the samples of one update (data/pipeline.h).
#include "base/error.h"
#include "models/class_scores.h"
#include "models/label_losses.h"
#include "models/metric_collectors.h"

namespace fleet {
namespace {

// The k of the top-k accuracy: 5, or 1 for a model of 5 classes or fewer, where the label always is
// among the first 5.
int64_t top_k_of(const TaskContext& context) { return context.classes() > 5 ? 5 : 1; }

int64_t ignored_label(const TaskBuilder& task) { return task.settings().integer("ignore_index"); }

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

void build_classification(TaskBuilder& task) {
  check_class_scores(task);
  const VarId label = task.feed("label"), weight = task.feed("weight");
  const bool mixed = task.training() && task.context().options.mixed_labels;
  const SampleLosses losses = mixed ? append_mixed_label_losses(task)
                                    : append_label_losses(task, label, ignored_label(task));
  if (task.training()) task.set_loss(task.emit("mean", {losses.values}, {}, "loss"));
  task.add_sums("losses", {"loss", "loss_weight"}, "weighted_sum", {losses.values, weight});
  if (losses.weights != kNoVar) {
    task.add_sums("loss_weights", {"label_weight", "labels"}, "weighted_sum",
                  {losses.weights, weight});
  }
  task.add_sums("counts", {"hits", "top_hits", "weight"}, "accuracy",
                {task.output("logits"), label, weight}, {{"k", top_k_of(task.context())}});
}

std::vector<FeedDef> classification_feeds(const TaskContext& context) {
  const Shape samples = context.shape("label");
  std::vector<FeedDef> feeds = {{"label", DType::kInt64, samples},
                                {"weight", DType::kFloat32, samples}};
  if (context.options.mixed_labels) {
    feeds.push_back({"other_label", DType::kInt64, samples, true});
    feeds.push_back({"own_share", DType::kFloat32, samples, true});
  }
  if (context.options.class_weights) {
    const Shape classes = {context.classes()};
    feeds.push_back({"class_weights", DType::kFloat32, classes, false, false});
  }
  return feeds;
}

MetricTable classification_metrics(const TaskContext& context) {
  MetricTable table{.sums = {"loss", "loss_weight", "hits", "top_hits", "weight"},
                    .headline = "acc1",
                    .items = "weight"};
  const bool weighs = context.options.class_weights;
  if (weighs) table.sums.insert(table.sums.end(), {"label_weight", "labels"});
  table.metrics = {
      {.name = "loss", .sum = "loss", .divisor = weighs ? "label_weight" : "loss_weight"},
      {.name = "acc1", .sum = "hits", .divisor = "weight", .larger_is_better = true}};
  if (const int64_t k = top_k_of(context); k > 1) {
    table.metrics.push_back({.name = "acc" + std::to_string(k),
                             .sum = "top_hits",
                             .divisor = "weight",
                             .larger_is_better = true});
  }
  add_named_metrics(context, MetricInput::kClasses, &table);
  return table;
}

}  // namespace

FLEET_TASK(image_classification) {
  def.help = "one label per image: cross entropy, top-1 and top-5 accuracy";
  def.schema.boolean("evaluate_classes", false, kEvaluateClassesHelp)
      .integer("ignore_index", -100, -9e15, 9e15,
               "samples with this label have a loss of 0; the label need not be a class");
  metrics_key(&def.schema, MetricInput::kClasses, {});
  label_loss_keys(&def.schema);
  def.outputs = {"logits"};
  def.feeds = classification_feeds;
  def.metrics = classification_metrics;
  def.build = build_classification;
  def.collector = [](const TaskContext& context) {
    return class_metrics(context, context.settings().boolean("evaluate_classes"));
  };
  def.probabilities = softmax_row;
}

}  // namespace fleet
