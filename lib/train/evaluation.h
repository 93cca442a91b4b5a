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
  std::optional<ClassCounts> classes;  // over all ranks, where asked for
};

struct EvaluationOptions {
  int64_t step = 0;       // trained so far
  bool by_class = false;  // the Program keeps its logits (train.evaluate_classes)
  // The pass's next batch; null at its end.
  std::function<const data::Batch*()> next_batch;
  // Called before each batch, and once where there is none left (works: false), on all ranks alike;
  // false ends the pass.
  std::function<bool(bool works)> next_turn;
  std::function<void()> batch_done;
};

// Of a batch or a pass. Collective.
MetricSums sum_over_ranks(const MetricSums& sums, Control& control);

// Collective. Nothing where next_turn() ended it. Errors of the pipeline and of
// StepRunner::evaluate().
std::optional<Evaluation> evaluate(data::InputPipeline& test, StepRunner& runner,
                                   const EvaluationOptions& options);

}  // namespace fleet
