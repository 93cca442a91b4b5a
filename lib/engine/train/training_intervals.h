// When a job fetches, evaluates, saves and compares its ranks, and when it ends: read from its
// settings once, so that no step looks them up by name.
#pragma once

#include <cstdint>

#include "train/job.h"

namespace fleet {

struct TrainingIntervals {
  explicit TrainingIntervals(const Job& job)
      : epochs(job.train.integer("epochs")),
        max_steps(job.train.integer("max_steps")),
        fetch_steps(job.train.integer("fetch_every")),
        evaluate_steps(job.train.integer("evaluate_every_steps")),
        evaluate_epochs(job.train.integer("evaluate_every")),
        save_steps(job.checkpoint.integer("every_steps")),
        save_epochs(job.checkpoint.integer("every_epochs")),
        compare_steps(job.train.integer("compare_ranks_every")) {}

  // 0: never, or for max_steps: no limit.
  int64_t epochs, max_steps;
  int64_t fetch_steps;
  int64_t evaluate_steps, evaluate_epochs;
  int64_t save_steps, save_epochs;
  int64_t compare_steps;  // ranks compare their parameters

  // Whether `done`, a number of finished steps or epochs, is a multiple of the interval `every`.
  static bool due(int64_t every, int64_t done) { return every > 0 && done % every == 0; }
  bool ends_after(int64_t steps) const { return max_steps > 0 && steps >= max_steps; }
};

}  // namespace fleet
