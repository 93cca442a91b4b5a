// Decides when a job evaluates, and which evaluations count.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "train/checkpoint.h"
#include "train/training_intervals.h"

namespace fleet {

// All ranks ask it with the same positions, so they decide equally.
class EvaluationPolicy {
 public:
  // has_data: whether there are test data. batches: those in an epoch of the training data.
  EvaluationPolicy(const Job& job, bool has_data, int64_t batches)
      : intervals_(job), has_data_(has_data), batches_(batches) {}

  // Whether training evaluates.
  bool evaluates() const {
    return has_data_ && (intervals_.evaluate_epochs > 0 || intervals_.evaluate_steps > 0);
  }
  bool due_after_epoch(int64_t epochs) const {
    return intervals_.due(intervals_.evaluate_epochs, epochs);
  }
  // Within an epoch. False if its end follows, which has its own evaluation.
  bool due_after_step(const TrainingPosition& at) const;
  bool due_at_end() const { return intervals_.evaluate_epochs > 0; }
  // The epoch that an evaluation at this position belongs to: the last one that was trained.
  static int64_t epoch_of(const TrainingPosition& at) {
    return at.batch > 0 ? at.epoch : std::max<int64_t>(at.epoch - 1, 0);
  }
  // Schedules and early stopping count only evaluations that an uninterrupted run makes too: those
  // at the ends of epochs, or every so many steps if there are no others.
  bool counts(const TrainingPosition& at) const;
  // A checkpoint is saved before the evaluation of its step, so a resumed training makes that
  // evaluation first. The epoch of that evaluation; nullopt: none was missed.
  //   schedule, tracker  the step of the last evaluation that each has seen; nullopt: it needs none
  std::optional<int64_t> missed(const TrainingPosition& at, std::optional<int64_t> schedule,
                                std::optional<int64_t> tracker) const;

 private:
  bool at_evaluated_epoch(const TrainingPosition& at) const {
    return at.batch == 0 && due_after_epoch(at.epoch);
  }

  const TrainingIntervals intervals_;
  const bool has_data_;
  const int64_t batches_;
};

}  // namespace fleet
