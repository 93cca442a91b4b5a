// image_classification: one label per image, or shares of all classes; cross entropy of the logits
// or another loss, top-1 and top-5 accuracy.
//
// The loss of a rank is the mean over all N samples of its batch. Padded samples count too, so that
// every rank divides by the same number. With class weights it is the mean of the weighted losses,
// with weights that the pipeline scales for the samples of one update (data/pipeline.h).
#include "base/error.h"
#include "models/class_scores.h"
#include "models/distillation.h"
#include "models/losses.h"
#include "models/metric_collectors.h"

namespace fleet {
namespace {

// The k of the top-k accuracy: 5, or 1 for a model of 5 classes or fewer, where the label always is
// among the first 5.
int64_t top_k_of(const TaskContext& context) { return context.classes() > 5 ? 5 : 1; }

void build_classification(TaskBuilder& task) {
  check_class_scores(task);
  const VarId label = task.feed("label"), weight = task.feed("weight");
  const SampleLosses losses = loss_of(task.context()).of_labels(task);
  if (task.training()) task.set_loss(task.emit("mean", {losses.values}, {}, "loss"));
  task.add_sums("losses", {"loss", "loss_weight"}, "weighted_sum", {losses.values, weight});
  if (losses.weights != kNoVar) {
    task.add_sums("loss_weights", {"label_weight", "labels"}, "weighted_sum",
                  {losses.weights, weight});
  }
  task.add_sums("counts", {"hits", "top_hits", "weight"}, "accuracy",
                {task.output("logits"), label, weight}, {{"k", top_k_of(task.context())}});
}

// Labels that are distributions over the classes.
FeedDef shares_feed(const TaskContext& context) {
  const Shape shares = context.shape(kLabelShares);
  const auto refuse = [](const std::string& what, const char* where, const char* next) {
    throw Error(ErrorCode::kUsage, what, where, next);
  };
  if (shares[1] != context.classes()) {
    refuse("the data have shares of " + std::to_string(shares[1]) + " classes, and the model has " +
               std::to_string(context.classes()),
           "model.num_classes", "make them equal");
  }
  if (context.options.mixed_labels) {
    refuse("images whose labels are shares of classes cannot be mixed",
           "data.augment (mixup_alpha, cutmix_alpha)", "set both to 0");
  }
  if (context.options.class_weights) {
    refuse("weighs samples by their one class, and the data have shares of all classes",
           "train.class_weights", "remove it");
  }
  return {kLabelShares, DType::kFloat32, shares};
}

std::vector<FeedDef> classification_feeds(const TaskContext& context) {
  loss_of(context);  // checks the keys of losses
  check_distillation(context);
  const Shape samples = context.shape("label");
  std::vector<FeedDef> feeds = {{"label", DType::kInt64, samples},
                                {"weight", DType::kFloat32, samples}};
  if (find_column(context.options.columns, kLabelShares)) feeds.push_back(shares_feed(context));
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

FLEET_TASK_LOSSES(image_classification) { def = {LossInput::kLabels, "cross_entropy"}; }

FLEET_TASK(image_classification) {
  def.help = "one label per image: cross entropy, top-1 and top-5 accuracy";
  def.schema.boolean("evaluate_classes", false, kEvaluateClassesHelp)
      .integer("ignore_index", -100, -9e15, 9e15,
               "samples with this label have a loss of 0; the label need not be a class");
  metrics_key(&def.schema, MetricInput::kClasses, {});
  distillation_keys(&def.schema);
  def.outputs = {"logits"};
  def.more_outputs = distillation_outputs;
  def.feeds = classification_feeds;
  def.metrics = classification_metrics;
  def.build = build_classification;
  def.collector = [](const TaskContext& context) {
    return class_metrics(context, context.settings().boolean("evaluate_classes"));
  };
  def.probabilities = softmax_row;
}

}  // namespace fleet
