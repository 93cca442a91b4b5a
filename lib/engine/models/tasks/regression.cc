// regression: numbers for each text, pair of texts or image; mean squared error of the logits or
// another loss, Pearson and Spearman correlation, or other metrics.
//
// targets [N, T] has T = model.num_classes numbers a sample. The loss of a sample is the mean of
// the losses of its T errors; that of a step is the mean over the samples of the whole update that
// pad no batch, as MSELoss of PyTorch for one large batch.
#include "base/error.h"
#include "models/losses.h"
#include "models/metric_collectors.h"
#include "models/weighted_loss.h"

namespace fleet {
namespace {

std::vector<FeedDef> number_feeds(const TaskContext& context) {
  if (context.options.mixed_labels) {
    throw Error(ErrorCode::kUsage, "cannot mix images whose labels are numbers",
                "data.augment (mixup_alpha, cutmix_alpha)", "set both to 0");
  }
  loss_of(context);  // checks the keys of losses
  return {{"targets", DType::kFloat32, context.shape("targets")},
          {"weight", DType::kFloat32, {context.batch()}},
          {"sample_denominator", DType::kFloat32, {1}, true, false}};
}

MetricTable number_table(const TaskContext& context) {
  MetricTable table{.sums = {"loss", "weight"}, .items = "weight"};
  table.metrics = {{.name = "loss", .sum = "loss", .divisor = "weight"}};
  add_named_metrics(context, MetricInput::kNumbers, &table);
  return table;
}

void check_logits(const TaskBuilder& task, const Shape& targets) {
  const Shape& logits = task.var(task.output("logits")).shape;
  if (logits == targets) return;
  throw Error(
      ErrorCode::kUsage,
      "the model gives logits " + logits.text() + ", and the data have targets " + targets.text(),
      "model.num_classes", "set it to the number of targets (data.label_column)");
}

void build_numbers(TaskBuilder& task) {
  const VarId targets = task.feed("targets"), weight = task.feed("weight");
  const Shape shape = task.var(targets).shape;
  check_logits(task, shape);
  const VarId errors =
      task.emit("elementwise_sub", {task.output("logits"), targets}, {}, "target_errors");
  VarId losses = loss_of(task.context()).of_numbers(task, errors);
  if (const int64_t count = shape[1]; count > 1) {
    // Not a product with ones: amp would compute it in the low type.
    std::vector<VarId> columns;
    for (int64_t t = 0; t < count; ++t) {
      columns.push_back(task.emit("slice", {losses},
                                  {{"axis", int64_t{1}}, {"start", t}, {"end", t + 1}},
                                  "error_loss_" + std::to_string(t)));
    }
    losses = task.emit("sum", columns, {}, "sample_sums");
    losses =
        task.emit("scale", {losses}, {{"scale", 1.0 / static_cast<double>(count)}}, "sample_means");
  }
  losses =
      task.emit("reshape", {losses}, {{"shape", std::vector<int64_t>{shape[0]}}}, "sample_losses");
  task.add_sums("losses", {"loss", "weight"}, "weighted_sum", {losses, weight});
  if (task.training()) task.set_loss(divided_loss(task, losses, weight, "sample_denominator"));
}

}  // namespace

FLEET_TASK_LOSSES(regression) { def = {LossInput::kNumbers, "mse"}; }

FLEET_TASK(regression) {
  def.help = "numbers for each text, pair of texts or image: mean squared error, correlations";
  metrics_key(&def.schema, MetricInput::kNumbers, {"pearson", "spearman"});
  def.outputs = {"logits"};
  def.feeds = number_feeds;
  def.metrics = number_table;
  def.build = build_numbers;
  def.collector = number_metrics;
  def.predicts_numbers = true;
}

}  // namespace fleet
