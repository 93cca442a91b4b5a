#include "train/evaluation.h"

#include <algorithm>
#include <cmath>

namespace fleet {

// The class of the largest logit, as the accuracy counts it: a logit that is not a number is the
// lowest, and no hit.
static int64_t predicted_class(std::span<const float> logits, int64_t label) {
  const auto less = [](float a, float b) { return std::isnan(a) ? !std::isnan(b) : a < b; };
  const int64_t largest = std::max_element(logits.begin(), logits.end(), less) - logits.begin();
  if (!std::isnan(logits[largest])) return largest;
  return (label + 1) % static_cast<int64_t>(logits.size());
}

void ClassCounts::add(std::span<const float> logits, std::span<const int64_t> labels,
                      std::span<const float> weights) {
  for (size_t i = 0; i < labels.size(); ++i) {
    if (weights[i] == 0 || labels[i] < 0 || labels[i] >= classes_) continue;
    const auto row = logits.subspan(i * classes_, classes_);
    counts_[labels[i] * classes_ + predicted_class(row, labels[i])] += 1;
  }
}

std::vector<int64_t> ClassCounts::samples() const {
  std::vector<int64_t> all(classes_);
  for (int64_t own = 0; own < classes_; ++own) {
    for (int64_t other = 0; other < classes_; ++other) all[own] += count(own, other);
  }
  return all;
}

std::vector<double> ClassCounts::accuracies() const {
  const std::vector<int64_t> all = samples();
  std::vector<double> accuracies(classes_, std::nan(""));
  for (int64_t own = 0; own < classes_; ++own) {
    if (all[own] > 0) accuracies[own] = static_cast<double>(count(own, own)) / all[own];
  }
  return accuracies;
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

std::string ClassCounts::csv(const std::vector<std::string>& names) const {
  const auto name = [&](int64_t label) {
    const auto index = static_cast<size_t>(label);
    return index < names.size() ? csv_field(names[index]) : std::to_string(label);
  };
  std::string text = "class";
  for (int64_t other = 0; other < classes_; ++other) text += "," + name(other);
  for (int64_t own = 0; own < classes_; ++own) {
    text += "\n" + name(own);
    for (int64_t other = 0; other < classes_; ++other)
      text += "," + std::to_string(count(own, other));
  }
  return text + "\n";
}

MetricSums sum_over_ranks(const MetricSums& sums, RankCoordinator& control) {
  double all[] = {sums.loss, sums.loss_weight, sums.top1, sums.topk, sums.weight};
  control.sum(all);
  return {all[0], all[1], all[2], all[3], all[4]};
}

std::optional<Evaluation> evaluate(StepRunner& runner, const EvaluationOptions& options) {
  runner.sync_ranks();
  Evaluation result;
  const VarId logits = runner.session().training().evaluate_logits;
  if (options.by_class) {
    result.classes.emplace(runner.executor().program().var(logits).shape[1]);
  }
  for (;;) {
    const data::Batch* batch = options.next_batch();
    if (!options.agree_on_step(batch != nullptr)) return std::nullopt;
    if (!batch) break;
    result.sums.add(runner.evaluate(*batch));
    if (result.classes && !runner.executor().program().var(logits).remote) {
      const auto count = static_cast<size_t>(batch->size);
      result.classes->add(runner.executor().values<float>(logits), batch->labels.first(count),
                          batch->weights.first(count));
    }
    options.batch_done();
  }
  result.sums = sum_over_ranks(result.sums, runner.control());
  if (result.classes) result.classes->sum(runner.control());
  return result;
}

}  // namespace fleet
