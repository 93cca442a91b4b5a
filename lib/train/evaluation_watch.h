// What evaluations are followed for: the best checkpoint (checkpoint.keep_best) and the end of a
// training that no longer gets better (train.early_stopping).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "train/evaluation_record.h"
#include "train/job.h"

namespace fleet {

// Metrics by their names in the test line of metrics.jsonl.
using EvaluatedMetrics = std::map<std::string, double>;

// Made and used alike on all ranks, which then decide alike. Not thread-safe.
class EvaluationWatch {
 public:
  // metrics: that evaluations give; none: there are no evaluations. kUsage where something is to be
  // followed that they do not give.
  EvaluationWatch(const Job& job, const std::vector<std::string>& metrics);

  bool keeps_best() const { return !record_.kept.metric.empty(); }
  bool may_stop() const { return !record_.stopping.metric.empty(); }
  bool wanted() const { return keeps_best() || may_stop(); }

  // After an evaluation; once a step, others are passed over. counts: whether early stopping counts
  // it. Returns whether its value is the best so far. One that is not finite never is.
  bool observe(int64_t step, const EvaluatedMetrics& metrics, bool counts);
  // No evaluation of the last `patience` was better than those before by more than `min_delta`.
  bool stops() const { return may_stop() && record_.without >= patience_; }
  // "loss has not been better than 0.25 (step 40) in 3 evaluations".
  std::string why_it_stops() const;

  const EvaluationRecord& record() const { return record_; }
  // What a checkpoint holds; of another metric than is followed now, it is left out.
  void restore(const EvaluationRecord& record);
  // The best checkpoint is that one again: a later one could not be saved.
  void take_back(const BestValue& kept) { record_.kept = kept; }

 private:
  EvaluationRecord record_;
  bool kept_max_ = false, stopping_max_ = false;  // whether more is better
  int64_t patience_ = 0;
  double min_delta_ = 0;
};

// The keys, for the schemas of `checkpoint` and `train`.
void add_keep_best_keys(Schema* checkpoint);
void add_early_stopping_keys(Schema* train);
// "keep_best": "acc1" is short for {"metric": "acc1"}; early_stopping too.
void name_evaluation_keys(ConfigTree* tree);

}  // namespace fleet
