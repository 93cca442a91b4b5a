// Follows evaluations to keep the best checkpoint (checkpoint.keep_best) and to end a training that
// no longer improves (train.early_stopping).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "models/metrics.h"
#include "train/checkpoint.h"
#include "train/job.h"

namespace fleet {

// Metrics by their names in the test line of metrics.jsonl.
using EvaluatedMetrics = std::map<std::string, double>;

// All ranks create it and call it with the same values, so they decide equally. Not thread-safe.
class EvaluationTracker {
 public:
  // metrics: those that evaluations provide; empty: there are no evaluations. more: names of
  // others that the job could follow. kUsage if it follows a metric that they do not provide.
  EvaluationTracker(const Job& job, const std::vector<MetricDef>& metrics,
                    const std::vector<std::string>& more = {});

  bool keeps_best() const { return !record_.kept.metric.empty(); }
  bool may_stop() const { return !record_.stopping.metric.empty(); }
  bool wanted() const { return keeps_best() || may_stop(); }

  // Call after an evaluation. Counts each step once and ignores repetitions. counts: whether early
  // stopping counts it. Returns whether the value is the best so far. A value that is not finite
  // never is.
  bool observe(int64_t step, const EvaluatedMetrics& metrics, bool counts);
  // True if none of the last `patience` evaluations beat the previous best by more than
  // `min_delta`.
  bool should_stop() const { return may_stop() && record_.without >= patience_; }
  // "loss has not been better than 0.25 (step 40) in 3 evaluations".
  std::string why_it_stops() const;

  const EvaluationRecord& record() const { return record_; }
  // Restores the record of a checkpoint; ignores it if its metric is not the one followed now.
  void restore(const EvaluationRecord& record);
  // Makes this the best checkpoint again, because a later one could not be saved.
  void restore_best(const BestValue& kept) { record_.kept = kept; }

 private:
  EvaluationRecord record_;
  bool kept_max_ = false, stopping_max_ = false;  // whether larger is better
  int64_t patience_ = 0;
  double min_delta_ = 0;
};

// Facts about the evaluations of a job.
struct EvaluationFacts {
  bool has_data = true;                        // there are test data
  bool schedule_observes = false;              // Schedule::depends_on_evaluations()
  std::vector<MetricDef> metrics;              // the task's
  std::string headline;                        // MetricTable::headline
  std::vector<std::string> more_metrics = {};  // MetricTable::more_metrics
};
// The tracker of a job. kUsage naming the key that needs evaluations if a job has none, or a metric
// that they do not give.
std::unique_ptr<EvaluationTracker> make_evaluation_tracker(const Job& job,
                                                           const EvaluationFacts& facts);

// Adds the keys to the schemas of `checkpoint` and `train`.
void add_keep_best_keys(Schema* checkpoint);
void add_early_stopping_keys(Schema* train);
// Expands "keep_best": "acc1" to {"metric": "acc1"}; likewise early_stopping.
void expand_evaluation_keys(ConfigTree* tree);
// Adds metrics that checkpoint.keep_best and train.early_stopping follow to train.metrics, if the
// task has this key and they are registered (models/named_metrics.h). settings: those of the tree.
void add_followed_metrics(const Settings& settings, ConfigTree* tree);

}  // namespace fleet
