// One pass over the test data.
#pragma once

#include <functional>
#include <optional>

#include "data/pipeline.h"
#include "train/class_counts.h"
#include "train/metric_sums.h"
#include "train/step_runner.h"

namespace fleet {

struct Evaluation {
  MetricSums sums;                     // over all ranks
  std::optional<ClassCounts> classes;  // over all ranks, if asked for
};

struct EvaluationOptions {
  int64_t step = 0;       // trained so far
  bool by_class = false;  // the Program keeps its logits (train.evaluate_classes)
  // The next batch of the pass; null at its end.
  std::function<const data::Batch*()> next_batch;
  // Called before each batch, and once when none is left (works: false), equally on all ranks;
  // false ends the pass.
  std::function<bool(bool works)> agree_on_step;
  std::function<void()> batch_done;
};

// Sums of a batch or a pass over all ranks. Collective.
MetricSums sum_over_ranks(const MetricSums& sums, RankCoordinator& control);

// Collective. nullopt if agree_on_step() ended it. Errors of the pipeline and of
// StepRunner::evaluate().
std::optional<Evaluation> evaluate(data::InputPipeline& test, StepRunner& runner,
                                   const EvaluationOptions& options);

}  // namespace fleet
