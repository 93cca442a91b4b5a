// causal_lm: predicts each token of a text from those before it; cross entropy of the next token,
// perplexity.
//
// The data shift the labels: labels[i] is the token to predict at position i, -100 where there is
// none, and loss_weight[i] says how much it counts (0 for padding, and for tokens of a prompt). The
// loss of a rank in a step is sum(loss_weight * loss) / denominator. The denominator is the
// weighted tokens of the whole update divided by its ranks and steps, a number that all ranks are
// fed; so the mean over ranks, merged steps and micro-batches is the loss of one large batch,
// however the weights are spread over them, and a rank without a weighted token adds 0.
#include <cmath>

#include "base/error.h"
#include "models/task.h"

namespace fleet {
namespace {

constexpr int64_t kNoLabel = -100;

std::vector<FeedDef> text_feeds(const TaskContext& context) {
  return {{"labels", DType::kInt64, context.shape("labels")},
          {"loss_weight", DType::kFloat32, context.shape("loss_weight")},
          {"denominator", DType::kFloat32, {1}, true, false}};
}

MetricTable text_metrics(const TaskContext&) {
  MetricTable table{
      .sums = {"loss", "tokens"}, .headline = "perplexity", .items = "tokens", .unit = "tokens"};
  table.metrics = {{.name = "loss", .sum = "loss", .divisor = "tokens"},
                   {.name = "perplexity",
                    .sum = "loss",
                    .divisor = "tokens",
                    .decimals = 3,
                    .of_quotient = [](double loss) { return std::exp(loss); }}};
  return table;
}

void build_text(TaskBuilder& task) {
  const VarId weight = task.feed("loss_weight");
  const auto losses =
      task.emit_all("linear_cross_entropy",
                    {task.output("hidden"), task.output("head"), task.feed("labels"), weight},
                    {{"ignore_index", kNoLabel}}, {"loss_sum", "token_losses"});
  if (task.training()) {
    // A micro-batch has a part of the batch, and their losses are averaged.
    const auto parts = static_cast<double>(task.context().options.micro_batches);
    VarId sum = losses[0];
    if (parts > 1) sum = task.emit("scale", {sum}, {{"scale", parts}}, "loss_of_micro_batch");
    task.set_loss(task.emit("elementwise_div", {sum, task.feed("denominator")}, {}, "loss"));
  }
  task.add_sums("losses", {"loss", "tokens"}, "weighted_sum", {losses[1], weight});
}

}  // namespace

FLEET_TASK(causal_lm) {
  def.help = "the next token of a text: cross entropy, perplexity";
  def.outputs = {"hidden", "head"};
  def.feeds = text_feeds;
  def.metrics = text_metrics;
  def.build = build_text;
}

}  // namespace fleet
