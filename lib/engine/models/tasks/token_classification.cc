// token_classification: a class of each labelled token of a text, such as the first token of each
// word; cross entropy, F1 of the entities that the tags spell.
//
// token_labels [N, S] are the classes, -100 where there is none, and loss_weight [N, S] is 1 for
// labelled tokens, 0 for others and for padding. The loss is sum(loss_weight * loss) / denominator,
// where the denominator covers the whole update, as in causal_lm.
#include "base/error.h"
#include "models/entity_metrics.h"
#include "models/predicted_words.h"
#include "models/task.h"
#include "models/weighted_loss.h"

namespace fleet {
namespace {

constexpr int64_t kNoLabel = -100;

std::vector<FeedDef> token_feeds(const TaskContext& context) {
  return {{"token_labels", DType::kInt64, context.shape("token_labels")},
          {"loss_weight", DType::kFloat32, context.shape("loss_weight")},
          {"denominator", DType::kFloat32, {1}, true, false}};
}

MetricTable token_metrics(const TaskContext& context) {
  context.shape("text");  // entity_metrics() joins the parts of a text
  context.shape("part");
  MetricTable table{.sums = {"loss", "tokens", "hits", "top_hits", "counted"},
                    .items = "tokens",
                    .unit = "tokens"};
  table.metrics = {
      {.name = "loss", .sum = "loss", .divisor = "tokens"},
      {.name = "accuracy", .sum = "hits", .divisor = "counted", .larger_is_better = true}};
  add_named_metrics(context, MetricInput::kEntities, &table);
  if (table.headline.empty()) table.headline = "accuracy";
  return table;
}

void check_logits(const TaskBuilder& task, const Shape& labels) {
  const Shape& own = task.var(task.output("token_logits")).shape;
  if (own.rank() == 3 && own[0] == labels[0] && own[1] == labels[1]) return;
  throw Error(ErrorCode::kUsage, "returns token_logits " + own.text(),
              "model '" + task.context().options.model + "'",
              "return a row of logits for each of the tokens " + labels.text());
}

void build_tokens(TaskBuilder& task) {
  const VarId logits = task.output("token_logits");
  const VarId labels = task.feed("token_labels"), weight = task.feed("loss_weight");
  const Shape tokens = task.var(labels).shape;
  check_logits(task, tokens);
  const VarId losses = task.emit_all("softmax_with_cross_entropy", {logits, labels},
                                     {{"ignore_index", kNoLabel}}, {"token_losses"})[0];
  task.add_sums("losses", {"loss", "tokens"}, "weighted_sum", {losses, weight});
  task.add_sums("counts", {"hits", "top_hits", "counted"}, "accuracy", {logits, labels, weight},
                {{"k", int64_t{1}}});
  if (task.training()) task.set_loss(divided_loss(task, losses, weight, "denominator"));
}

}  // namespace

FLEET_TASK(token_classification) {
  def.help = "a class for each word of a text: cross entropy, F1 of entities";
  metrics_key(&def.schema, MetricInput::kEntities, {"entity_f1"});
  def.outputs = {"token_logits"};
  def.feeds = token_feeds;
  def.metrics = token_metrics;
  def.build = build_tokens;
  def.collector = entity_metrics;
  def.decoder = word_decoder;
}

}  // namespace fleet
