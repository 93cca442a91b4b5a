// question_answering: the span of a text that answers a question; cross entropy of its first and of
// its last token, exact match and F1 of the answers.
//
// A sample is a question with a window of the text; start_position and end_position [N] are tokens
// of the row, the first one if the window has no answer. The loss of a sample is the mean of the
// two cross entropies, as BertForQuestionAnswering's. The loss of a step is the mean over the
// samples of the whole update that pad no batch, so that it does not depend on the ranks.
#include "base/error.h"
#include "models/answer_metrics.h"
#include "models/predicted_answers.h"
#include "models/task.h"
#include "models/weighted_loss.h"

namespace fleet {
namespace {

std::vector<FeedDef> question_feeds(const TaskContext& context) {
  return {{"start_position", DType::kInt64, context.shape("start_position")},
          {"end_position", DType::kInt64, context.shape("end_position")},
          {"weight", DType::kFloat32, context.shape("start_position")},
          {"sample_denominator", DType::kFloat32, {1}, true, false}};
}

void check_answer_keys(const Settings& settings) {
  if (settings.boolean("null_answers") || !settings.given("null_threshold")) return;
  throw Error(ErrorCode::kUsage, "has no effect without null answers", "train.null_threshold",
              "set train.null_answers to true, or remove it");
}

MetricTable question_metrics(const TaskContext& context) {
  check_answer_keys(context.settings());
  for (const char* column : {"question", "part", "token_begin", "token_end"}) {
    context.shape(column);  // of AnswerMetrics
  }
  MetricTable table{.sums = {"loss", "weight"}, .items = "weight"};
  table.metrics = {{.name = "loss", .sum = "loss", .divisor = "weight"}};
  add_named_metrics(context, MetricInput::kAnswers, &table);
  return table;
}

// The cross entropy of one of the two columns of the logits.
VarId append_losses(TaskBuilder& task, int64_t which, const std::string& name) {
  const VarId logits = task.output("span_logits");
  const VarId column =
      task.emit("slice", {logits}, {{"axis", int64_t{2}}, {"start", which}, {"end", which + 1}},
                name + "_column");
  const VarId flat =
      task.emit("reshape", {column}, {{"shape", std::vector<int64_t>{0, -1}}}, name + "_logits");
  return task.emit_all("softmax_with_cross_entropy", {flat, task.feed(name + "_position")}, {},
                       {name + "_losses"})[0];
}

void build_questions(TaskBuilder& task) {
  const Shape& logits = task.var(task.output("span_logits")).shape;
  if (logits.rank() != 3 || logits[2] != 2) {
    throw Error(ErrorCode::kUsage, "returns span_logits " + logits.text(),
                "model '" + task.context().options.model + "'",
                "return two logits for each token, [batch, tokens, 2]");
  }
  const VarId weight = task.feed("weight");
  const VarId both =
      task.emit("elementwise_add", {append_losses(task, 0, "start"), append_losses(task, 1, "end")},
                {}, "both_losses");
  const VarId losses = task.emit("scale", {both}, {{"scale", 0.5}}, "sample_losses");
  task.add_sums("losses", {"loss", "weight"}, "weighted_sum", {losses, weight});
  if (task.training()) task.set_loss(divided_loss(task, losses, weight, "sample_denominator"));
}

AnswerLimits answer_limits(const Settings& settings) {
  return {.candidates = settings.integer("answer_candidates"),
          .longest = settings.integer("longest_answer"),
          .may_have_none = settings.boolean("null_answers"),
          .none_threshold = settings.number("null_threshold")};
}

std::unique_ptr<EvaluationCollector> answer_collector(const TaskContext& context) {
  std::vector<std::string> metrics = registered_metrics(context);
  if (metrics.empty()) return nullptr;
  return std::make_unique<AnswerMetrics>(std::move(metrics), answer_limits(context.settings()));
}

}  // namespace

FLEET_TASK(question_answering) {
  def.help = "the span of a text that answers a question: cross entropy, exact match and F1";
  metrics_key(&def.schema, MetricInput::kAnswers, {"f1", "exact_match"});
  def.schema
      .integer("answer_candidates", 20, 1, 1e6,
               "evaluations and predictions combine so many of a window's best first and last "
               "tokens")
      .integer("longest_answer", 30, 1, 1e6,
               "tokens of an answer in evaluations and predictions, at most")
      .boolean(
          "null_answers", false,
          "evaluations and predictions may answer that the text has no answer, as in SQuAD 2.0")
      .number("null_threshold", 0, -1e6, 1e6,
              "how much the score of no answer must exceed that of the best answer");
  def.outputs = {"span_logits"};
  def.feeds = question_feeds;
  def.metrics = question_metrics;
  def.build = build_questions;
  def.collector = answer_collector;
  def.decoder = [](const TaskContext& context) {
    return answer_decoder(answer_limits(context.settings()), context.shape("token_begin")[1]);
  };
}

}  // namespace fleet
