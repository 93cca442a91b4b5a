// skip_gram: tells a word's neighbour from words drawn at random. The loss of a sample is the sum
// of the binary cross entropies of its logits: the first one is the neighbour's, the others are
// those of the drawn words (Mikolov et al. 2013, equation 4, negated).
//
// The loss of a step is the mean over the samples of the whole update that pad no batch.
#include "base/error.h"
#include "models/task.h"
#include "models/weighted_loss.h"

namespace fleet {
namespace {

std::vector<FeedDef> word_feeds(const TaskContext& context) {
  return {{"weight", DType::kFloat32, {context.batch()}},
          {"sample_denominator", DType::kFloat32, {1}, true, false}};
}

MetricTable word_metrics(const TaskContext&) {
  MetricTable table{.sums = {"loss", "weight"}, .items = "weight"};
  table.metrics = {{.name = "loss", .sum = "loss", .divisor = "weight"}};
  return table;
}

// 1 for the first logit of a sample, 0 for the others.
VarId word_targets(TaskBuilder& task, int64_t samples, int64_t words) {
  const auto filled = [&](const char* name, int64_t columns, double value) {
    return task.emit("fill", {},
                     {{"shape", std::vector<int64_t>{samples, columns}}, {"value", value}}, name);
  };
  return task.emit("concat", {filled("neighbours", 1, 1), filled("drawn_words", words - 1, 0)},
                   {{"axis", int64_t{1}}}, "targets");
}

void build_words(TaskBuilder& task) {
  const VarId logits = task.output("logits"), weight = task.feed("weight");
  const Shape shape = task.var(logits).shape;
  if (shape.rank() != 2 || shape[1] < 2) {
    throw Error(ErrorCode::kUsage,
                "the model gives logits " + shape.text() + ", and the task needs two or more words",
                "the task skip_gram", "draw one word or more for each neighbour");
  }
  const VarId means = task.emit(
      "sigmoid_cross_entropy", {logits, word_targets(task, shape[0], shape[1])}, {}, "word_losses");
  const VarId losses =
      task.emit("scale", {means}, {{"scale", static_cast<double>(shape[1])}}, "sample_losses");
  task.add_sums("losses", {"loss", "weight"}, "weighted_sum", {losses, weight});
  if (task.training()) task.set_loss(divided_loss(task, losses, weight, "sample_denominator"));
}

}  // namespace

FLEET_TASK(skip_gram) {
  def.help = "tells a word's neighbour from drawn words: embeddings of words (word2vec)";
  def.outputs = {"logits"};
  def.feeds = word_feeds;
  def.metrics = word_metrics;
  def.build = build_words;
}

}  // namespace fleet
