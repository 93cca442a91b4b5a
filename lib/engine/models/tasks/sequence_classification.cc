// sequence_classification: one class for each text, or for each pair of texts; cross entropy of the
// logits or another loss, accuracy and the metrics that train.metrics names.
//
// The loss of a step is the mean over the samples of the whole update that pad no batch, so that it
// does not depend on the ranks. With class weights it is the weighted mean, with weights that the
// pipeline scales for the samples of one update (data/pipeline.h).
#include "models/class_scores.h"
#include "models/losses.h"
#include "models/metric_collectors.h"
#include "models/weighted_loss.h"

namespace fleet {
namespace {

std::vector<FeedDef> text_feeds(const TaskContext& context) {
  loss_of(context);  // checks the keys of losses
  const Shape samples = context.shape("label");
  std::vector<FeedDef> feeds = {{"label", DType::kInt64, samples},
                                {"weight", DType::kFloat32, samples}};
  if (context.options.class_weights) {
    const Shape classes = {context.classes()};
    feeds.push_back({"class_weights", DType::kFloat32, classes, false, false});
  } else {
    feeds.push_back({"sample_denominator", DType::kFloat32, {1}, true, false});
  }
  return feeds;
}

MetricTable text_metrics(const TaskContext& context) {
  MetricTable table{.sums = {"loss", "loss_weight", "hits", "top_hits", "weight"},
                    .items = "weight"};
  const bool weighs = context.options.class_weights;
  if (weighs) table.sums.insert(table.sums.end(), {"label_weight", "labels"});
  table.metrics = {
      {.name = "loss", .sum = "loss", .divisor = weighs ? "label_weight" : "loss_weight"},
      {.name = "accuracy", .sum = "hits", .divisor = "weight", .larger_is_better = true}};
  add_named_metrics(context, MetricInput::kClasses, &table);
  if (table.headline.empty()) table.headline = "accuracy";
  return table;
}

void build_texts(TaskBuilder& task) {
  check_class_scores(task);
  const VarId label = task.feed("label"), weight = task.feed("weight");
  const SampleLosses losses = loss_of(task.context()).of_labels(task);
  const bool weighs = losses.weights != kNoVar;
  task.add_sums("losses", {"loss", "loss_weight"}, "weighted_sum", {losses.values, weight});
  if (weighs) {
    task.add_sums("loss_weights", {"label_weight", "labels"}, "weighted_sum",
                  {losses.weights, weight});
  }
  task.add_sums("counts", {"hits", "top_hits", "weight"}, "accuracy",
                {task.output("logits"), label, weight}, {{"k", int64_t{1}}});
  if (!task.training()) return;
  task.set_loss(weighs ? task.emit("mean", {losses.values}, {}, "loss")
                       : divided_loss(task, losses.values, weight, "sample_denominator"));
}

}  // namespace

FLEET_TASK_LOSSES(sequence_classification) { def = {LossInput::kLabels, "cross_entropy"}; }

FLEET_TASK(sequence_classification) {
  def.help = "one class for each text, or pair of texts: cross entropy, accuracy, F1, Matthews";
  metrics_key(&def.schema, MetricInput::kClasses, {});
  def.schema.boolean("evaluate_classes", false, kEvaluateClassesHelp);
  def.outputs = {"logits"};
  def.feeds = text_feeds;
  def.metrics = text_metrics;
  def.build = build_texts;
  def.collector = [](const TaskContext& context) {
    return class_metrics(context, context.settings().boolean("evaluate_classes"));
  };
  def.probabilities = softmax_row;
}

}  // namespace fleet
