// When a job fetches, evaluates, saves and compares its ranks, and when it ends: read from its
// settings once, so that a step looks no name up.
#pragma once

#include <cstdint>

#include "train/job.h"

namespace fleet {

struct TrainingIntervals {
  explicit TrainingIntervals(const Job& job);

  // 0: never, or for max_steps: no limit.
  int64_t epochs = 0, max_steps = 0;
  int64_t fetch_steps = 1;
  int64_t evaluate_steps = 0, evaluate_epochs = 0;
  int64_t save_steps = 0, save_epochs = 0;
  int64_t compare_steps = 0;  // ranks compare their parameters

  // Whether `done`, a number of finished steps or epochs, is a multiple of the interval `every`.
  static bool due(int64_t every, int64_t done) { return every > 0 && done % every == 0; }
  bool ends_after(int64_t steps) const { return max_steps > 0 && steps >= max_steps; }
};

}  // namespace fleet
