// click: the probability of an event for each sample, such as a click on an advertisement; binary
// cross entropy of the logit, AUC, calibration.
//
// The loss of a step is the mean over the samples of the whole update that pad no batch, so that it
// does not depend on the ranks.
#include <cmath>

#include "base/error.h"
#include "models/click_metrics.h"
#include "models/weighted_loss.h"

namespace fleet {
namespace {

std::vector<FeedDef> click_feeds(const TaskContext& context) {
  const Shape label = context.shape("label");
  const DType dtype = find_column(context.options.columns, "label")->dtype;
  if (dtype != DType::kFloat32 || label != Shape{context.batch(), 1}) {
    throw Error(ErrorCode::kUsage,
                "the data have labels " + label.text() + " of " + name_of(dtype) +
                    ", and the task click needs one float32 for each sample",
                "data.source", "use a source of clicks, such as criteo");
  }
  return {{"label", DType::kFloat32, label},
          {"weight", DType::kFloat32, {context.batch()}},
          {"sample_denominator", DType::kFloat32, {1}, true, false}};
}

MetricTable click_table(const TaskContext& context) {
  MetricTable table{.sums = {"loss", "weight"}, .items = "weight"};
  table.metrics = {{.name = "loss", .sum = "loss", .divisor = "weight"}};
  add_named_metrics(context, MetricInput::kClicks, &table);
  return table;
}

void build_clicks(TaskBuilder& task) {
  const VarId logits = task.output("logits"), label = task.feed("label");
  if (task.var(logits).shape != task.var(label).shape) {
    throw Error(ErrorCode::kUsage,
                "the model gives logits " + task.var(logits).shape.text() +
                    ", and the task click needs one for each sample",
                "model '" + task.context().options.model + "'",
                "use a model of clicks, such as deepfm, or set model.num_classes to 1");
  }
  const VarId losses = task.emit("sigmoid_cross_entropy", {logits, label}, {}, "sample_losses");
  const VarId weight = task.feed("weight");
  task.add_sums("losses", {"loss", "weight"}, "weighted_sum", {losses, weight});
  if (task.training()) task.set_loss(divided_loss(task, losses, weight, "sample_denominator"));
}

}  // namespace

FLEET_TASK(click) {
  def.help = "the probability of a click: binary cross entropy (log loss), AUC, calibration";
  metrics_key(&def.schema, MetricInput::kClicks, {"auc", "calibration"});
  def.schema.integer("auc_bins", 1 << 18, 2, 1 << 26,
                     "the AUC is exact for as many samples; for more it comes from two histograms "
                     "of so many bins each (with the default the error is about 1e-6)");
  def.outputs = {"logits"};
  def.feeds = click_feeds;
  def.metrics = click_table;
  def.build = build_clicks;
  def.collector = click_metrics;
  def.predicts_probability = true;
  def.probabilities = [](std::span<const float> logits, std::span<double> probabilities) {
    probabilities[0] = 1 / (1 + std::exp(-static_cast<double>(logits[0])));
  };
}

}  // namespace fleet
