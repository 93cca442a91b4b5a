// image_classification: one label per image; cross entropy of the logits, top-1 and top-5 accuracy.
//
// The loss of a rank is the mean over all N samples of its batch. Padded samples count too, so that
// every rank divides by the same number. With class weights it is the mean of the weighted losses,
// with weights that the pipeline scales for the samples of one update (data/pipeline.h).
#include <cmath>

#include "base/error.h"
#include "models/class_counts.h"
#include "models/class_scores.h"
#include "models/task.h"

namespace fleet {
namespace {

// The k of the top-k accuracy: 5, or 1 for a model of 5 classes or fewer, where the label always is
// among the first 5.
int64_t top_k_of(const TaskContext& context) {
  return context.model().integer("num_classes") > 5 ? 5 : 1;
}

// Per-sample values.
struct SampleLosses {
  VarId values;
  VarId weights = kNoVar;  // the weight of the label, if classes have weights
};

SampleLosses append_label_losses(TaskBuilder& task, VarId label, const std::string& prefix) {
  const Attributes attributes = {{"label_smoothing", task.settings().number("label_smoothing")},
                                 {"ignore_index", task.settings().integer("ignore_index")}};
  const VarId logits = task.output("logits");
  if (!task.context().options.class_weights) {
    return {task.emit_all("softmax_with_cross_entropy", {logits, label}, attributes,
                          {prefix + "sample_losses"})[0]};
  }
  const auto both =
      task.emit_all("weighted_cross_entropy", {logits, label, task.feed("class_weights")},
                    attributes, {prefix + "sample_losses", prefix + "sample_weights"});
  return {both[0], both[1]};
}

// With two labels for each sample, the loss of a sample is own_share * loss(label) + (1 -
// own_share) * loss(other_label). The metrics count hits of `label`.
SampleLosses append_mixed_label_losses(TaskBuilder& task) {
  const SampleLosses own = append_label_losses(task, task.feed("label"), "");
  const SampleLosses other = append_label_losses(task, task.feed("other_label"), "other_");
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
  const SampleLosses losses =
      mixed ? append_mixed_label_losses(task) : append_label_losses(task, label, "");
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
    const Shape classes = {context.model().integer("num_classes")};
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
  return table;
}

// softmax; a logit that is not a number has no probability.
void softmax_row(std::span<const float> logits, std::span<double> probabilities) {
  double largest = -INFINITY, sum = 0;
  for (const float logit : logits) {
    if (!std::isnan(logit)) largest = std::max<double>(largest, logit);
  }
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - largest);
  for (size_t c = 0; c < logits.size(); ++c) {
    probabilities[c] = std::exp(static_cast<double>(logits[c]) - largest) / sum;
  }
}

}  // namespace

FLEET_TASK(image_classification) {
  def.help = "one label per image: cross entropy, top-1 and top-5 accuracy";
  def.schema
      .boolean(
          "evaluate_classes", false,
          "write the accuracy of each class to metrics.jsonl, and confusion_matrix.csv next to it")
      .number("label_smoothing", 0, 0, 1, "amount of label smoothing in the loss")
      .integer("ignore_index", -100, -9e15, 9e15,
               "samples with this label have a loss of 0; the label need not be a class")
      .choice("class_weights.rule", "", {"", "balanced"},
              "weights of the classes in the loss; balanced: samples / (classes x samples of the "
              "class); train.class_weights=balanced is the short form")
      .numbers("class_weights.values", {},
               "the same as a list, one for each class; short form: train.class_weights=[1, 2.5]");
  def.outputs = {"logits"};
  def.feeds = classification_feeds;
  def.metrics = classification_metrics;
  def.build = build_classification;
  def.collector = [](const TaskContext& context) -> std::unique_ptr<EvaluationCollector> {
    if (!context.settings().boolean("evaluate_classes")) return nullptr;
    return std::make_unique<ClassCounts>(context.model().integer("num_classes"));
  };
  def.probabilities = softmax_row;
}

}  // namespace fleet
