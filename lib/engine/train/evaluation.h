// One pass over the test data, and the predicted class of each of its samples.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/pipeline.h"
#include "train/metric_sums.h"
#include "train/rank_coordinator.h"
#include "train/step_runner.h"

namespace fleet {

// Quotes a field of a line of CSV according to RFC 4180.
std::string csv_field(const std::string& text);

// A confusion matrix: rows are the true classes of the samples, columns the predicted ones (largest
// logit). Not thread-safe.
class ClassCounts {
 public:
  explicit ClassCounts(int64_t classes) : classes_(classes), counts_(classes * classes) {}

  // logits: [N, classes]; labels, weights: [N]. Skips samples of weight 0 and labels outside the
  // classes (train.ignore_index); among equal logits the first one wins.
  void add(std::span<const float> logits, std::span<const int64_t> labels,
           std::span<const float> weights);
  // Sums over all ranks, in place.
  void sum(RankCoordinator& control) { control.sum(counts_); }

  int64_t count(int64_t own, int64_t taken_for) const {
    return static_cast<int64_t>(counts_[own * classes_ + taken_for]);
  }
  std::vector<int64_t> samples() const;    // per class
  std::vector<double> accuracies() const;  // per class; NaN for a class without samples
  // One line per class, with its counts separated by commas; the first line names the columns.
  // names: the classes'; a class without a name appears as its number.
  std::string csv(const std::vector<std::string>& names) const;

 private:
  int64_t classes_;
  std::vector<double> counts_;  // exact up to 2^53
};

struct Evaluation {
  MetricSums sums;                     // over all ranks
  std::optional<ClassCounts> classes;  // over all ranks, if asked for
};

struct EvaluationOptions {
  bool by_class = false;  // the Program keeps its logits (train.evaluate_classes)
  // The next batch of the pass; null at its end.
  std::function<const data::Batch*()> next_batch;
  // Called before each batch, and once when none is left (works: false), equally on all ranks;
  // false ends the pass.
  std::function<bool(bool works)> agree_on_step = [](bool) { return true; };
  std::function<void()> batch_done = [] {};
};

// Sums of a batch or a pass over all ranks. Collective.
MetricSums sum_over_ranks(const MetricSums& sums, RankCoordinator& control);

// Collective. The test data must be at the start of an epoch. nullopt if agree_on_step() ended it.
// Errors of the pipeline and of StepRunner::evaluate().
std::optional<Evaluation> evaluate(StepRunner& runner, const EvaluationOptions& options);

}  // namespace fleet
