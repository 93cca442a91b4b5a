// masked_lm: predicts masked tokens of a text from those around them, and whether the second of two
// pieces follows the first; pre-training as BERT's.
//
// The data mask the tokens: masked_positions [N, M] are their places, masked_labels [N, M] the
// tokens to predict there, loss_weight [N, M] is 0 in unused places. The head is computed for these
// places only. The loss is sum(loss_weight * loss) / denominator, where the denominator covers
// the whole update, as in causal_lm.
//
// If the data have next_sentence_label, the mean cross entropy of next_sentence_logits over the
// samples is added, as in BertForPreTraining. Samples that pad a batch do not count; the divisor is
// the number of the others in the whole update, so that it does not depend on the ranks either.
#include <cmath>

#include "base/error.h"
#include "models/model.h"
#include "models/task.h"

namespace fleet {
namespace {

constexpr int64_t kNoMaskedLabel = -100;

bool has_pairs(const TaskContext& context) {
  return find_column(context.options.columns, "next_sentence_label") != nullptr;
}

std::vector<std::string> next_sentence_outputs(const TaskContext& context) {
  if (!has_pairs(context)) return {};
  const std::string output = "next_sentence_logits";
  const ModelPorts ports = ports_of(context.options.model, context.model());
  if (!ports.gives({output})) {
    throw Error(ErrorCode::kUsage, "the model does not predict the next sentence",
                "data.next_sentence", "set it to false, or choose another model, such as bert");
  }
  return {output};
}

std::vector<FeedDef> masked_feeds(const TaskContext& context) {
  std::vector<FeedDef> feeds = {{"masked_labels", DType::kInt64, context.shape("masked_labels")},
                                {"loss_weight", DType::kFloat32, context.shape("loss_weight")},
                                {"denominator", DType::kFloat32, {1}, true, false}};
  if (has_pairs(context)) {
    const Shape samples = context.shape("next_sentence_label");
    feeds.push_back({"next_sentence_label", DType::kInt64, samples});
    feeds.push_back({"weight", DType::kFloat32, samples});
    feeds.push_back({"sample_denominator", DType::kFloat32, {1}, true, false});
  }
  return feeds;
}

MetricTable masked_metrics(const TaskContext& context) {
  MetricTable table{.sums = {"masked_loss", "tokens", "masked_hits", "masked_tokens"},
                    .headline = "perplexity",
                    .items = "tokens",
                    .unit = "tokens"};
  const MetricDef masked{.name = "masked_loss", .sum = "masked_loss", .divisor = "tokens"};
  table.metrics = {masked,
                   {.name = "perplexity",
                    .sum = "masked_loss",
                    .divisor = "tokens",
                    .decimals = 3,
                    .of_quotient = [](double loss) { return std::exp(loss); }},
                   {.name = "masked_accuracy",
                    .sum = "masked_hits",
                    .divisor = "masked_tokens",
                    .larger_is_better = true}};
  MetricDef& loss = table.metrics[0];
  loss.name = "loss";
  if (!has_pairs(context)) return table;
  loss.plus = "next_sentence_loss";
  table.sums.insert(table.sums.end(), {"next_loss", "pairs", "next_hits", "next_top_hits", "next"});
  table.metrics.push_back(masked);
  table.metrics.push_back({.name = "next_sentence_loss", .sum = "next_loss", .divisor = "pairs"});
  table.metrics.push_back({.name = "next_sentence_accuracy",
                           .sum = "next_hits",
                           .divisor = "next",
                           .larger_is_better = true});
  return table;
}

// sum * factor / the fed divisor.
VarId divided_by(TaskBuilder& task, VarId sum, double factor, const std::string& divisor,
                 const std::string& name) {
  if (factor != 1) sum = task.emit("scale", {sum}, {{"scale", factor}}, "scaled_" + name);
  return task.emit("elementwise_div", {sum, task.feed(divisor)}, {}, name);
}

// The loss of the next sentences in training.
VarId append_next_sentences(TaskBuilder& task) {
  const VarId logits = task.output("next_sentence_logits");
  const VarId label = task.feed("next_sentence_label"), weight = task.feed("weight");
  const VarId losses =
      task.emit_all("softmax_with_cross_entropy", {logits, label},
                    {{"ignore_index", kNoMaskedLabel}}, {"next_sentence_losses"})[0];
  task.add_sums("next_losses", {"next_loss", "pairs"}, "weighted_sum", {losses, weight});
  task.add_sums("next_counts", {"next_hits", "next_top_hits", "next"}, "accuracy",
                {logits, label, weight}, {{"k", int64_t{1}}});
  if (!task.training()) return kNoVar;
  const VarId counted = task.emit("elementwise_mul", {losses, weight}, {}, "counted_next_losses");
  const VarId mean = task.emit("mean", {counted}, {}, "mean_next_loss");
  const auto samples = static_cast<double>(task.context().batch());
  const auto parts = static_cast<double>(task.context().options.micro_batches);
  return divided_by(task, mean, samples * parts, "sample_denominator", "next_sentence_loss");
}

void build_masked(TaskBuilder& task) {
  const VarId weight = task.feed("loss_weight");
  const auto results = task.emit_all("linear_cross_entropy",
                                     {task.output("masked_hidden"), task.output("head"),
                                      task.feed("masked_labels"), weight, task.output("head_bias")},
                                     {{"ignore_index", kNoMaskedLabel}},
                                     {"masked_loss_sum", "masked_losses", "masked_hits"});
  const VarId next = has_pairs(task.context()) ? append_next_sentences(task) : kNoVar;
  task.add_sums("losses", {"masked_loss", "tokens"}, "weighted_sum", {results[1], weight});
  task.add_sums("hits", {"masked_hits", "masked_tokens"}, "weighted_sum", {results[2], weight});
  if (!task.training()) return;
  // A micro-batch has a part of the batch, and their losses are averaged.
  const auto parts = static_cast<double>(task.context().options.micro_batches);
  const VarId masked = divided_by(task, results[0], parts, "denominator", "masked_loss");
  task.set_loss(next == kNoVar ? masked : task.emit("elementwise_add", {masked, next}, {}, "loss"));
}

}  // namespace

FLEET_TASK(masked_lm) {
  def.help =
      "masked tokens of a text, and the next sentence if the data have pairs: cross entropy, "
      "perplexity, accuracy";
  def.outputs = {"masked_hidden", "head", "head_bias"};
  def.more_outputs = next_sentence_outputs;
  def.feeds = masked_feeds;
  def.metrics = masked_metrics;
  def.build = build_masked;
}

}  // namespace fleet
