// One pass over the test data.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "data/pipeline.h"
#include "models/task.h"
#include "train/rank_coordinator.h"
#include "train/step_runner.h"

namespace fleet {

struct Evaluation {
  MetricSums sums;                                 // over all ranks
  std::unique_ptr<EvaluationCollector> collected;  // over all ranks; null if the task has none
};

struct EvaluationOptions {
  // The next batch of the pass; null at its end.
  std::function<const data::Batch*()> next_batch;
  // The source of these batches, for metrics that compare texts. Null: such a task is refused.
  const data::Source* source = nullptr;
  // Called before each batch, and once when none is left (works: false), equally on all ranks;
  // false ends the pass.
  std::function<bool(bool works)> agree_on_step = [](bool) { return true; };
  std::function<void()> batch_done = [] {};
};

// Exchange between the ranks of a coordinator, which must outlive it.
std::unique_ptr<RankExchange> make_rank_exchange(RankCoordinator& control);

// Sums of a batch or a pass over all ranks. Collective.
MetricSums sum_over_ranks(const MetricSums& sums, RankCoordinator& control);

// Collective. The test data must be at the start of an epoch. nullopt if agree_on_step() ended it.
// Errors of the pipeline and of StepRunner::evaluate().
std::optional<Evaluation> evaluate(StepRunner& runner, const EvaluationOptions& options);

}  // namespace fleet
