#include "train/evaluation_policy.h"

namespace fleet {

bool EvaluationPolicy::due_after_step(const TrainingPosition& at) const {
  if (!has_data_ || !intervals_.due(intervals_.evaluate_steps, at.step)) return false;
  return at.batch != batches_ || !due_after_epoch(at.epoch + 1);
}

bool EvaluationPolicy::counts(const TrainingPosition& at) const {
  return intervals_.evaluate_epochs > 0 ? at_evaluated_epoch(at)
                                        : intervals_.due(intervals_.evaluate_steps, at.step);
}

std::optional<int64_t> EvaluationPolicy::missed(const TrainingPosition& at,
                                                std::optional<int64_t> schedule,
                                                std::optional<int64_t> tracker) const {
  const bool by_schedule = schedule.value_or(at.step) != at.step;
  const bool by_tracker = tracker.value_or(at.step) != at.step;
  if (at.step == 0 || (!by_schedule && !by_tracker)) return std::nullopt;
  if (at_evaluated_epoch(at)) return at.epoch - 1;
  if (by_tracker && due_after_step(at)) return at.epoch;
  return std::nullopt;
}

}  // namespace fleet
