#include "train/checkpoint_policy.h"

#include <utility>

namespace fleet {

CheckpointPolicy::CheckpointPolicy(const Job& job)
    : intervals_(job),
      at_end_(job.checkpoint.boolean("at_end")),
      newest_(static_cast<int>(job.checkpoint.integer("keep"))) {}

bool CheckpointPolicy::is_saved(int64_t step, const BestValue& best) {
  if (saved_step_ != step) return false;
  if (best.step == step) best_on_disk_ = best;
  return true;
}

Keep CheckpointPolicy::begin(int64_t step, const BestValue& best) {
  saved_step_ = step;
  saving_best_ = best;
  saving_ = true;
  skipped_ = false;
  return {.newest = newest_, .also_step = best.step};
}

BestValue CheckpointPolicy::end(bool failed, const BestValue& best) {
  saving_ = hangs_ = false;
  failed_ = failed;
  if (failed) return without(std::exchange(saved_step_, kept_step_), best);
  if (saving_best_.step == saved_step_) best_on_disk_ = saving_best_;
  kept_step_ = saved_step_;
  return best;
}

BestValue CheckpointPolicy::skip(int64_t step, const BestValue& best) {
  skipped_ = true;
  return without(step, best);
}

BestValue CheckpointPolicy::without(int64_t step, const BestValue& best) const {
  return best.step == step ? best_on_disk_ : best;
}

}  // namespace fleet
