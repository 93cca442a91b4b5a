// Decides when a job saves, which checkpoints it keeps, and what a failed save changes.
#pragma once

#include <cstdint>
#include <limits>

#include "train/checkpoint.h"
#include "train/training_intervals.h"

namespace fleet {

// Reads and writes no file, and waits for nothing. All ranks call it with the same values, so they
// decide equally. Not thread-safe.
class CheckpointPolicy {
 public:
  explicit CheckpointPolicy(const Job& job);

  // Whether the job saves, apart from the best checkpoint (checkpoint.keep_best).
  bool saves() const { return at_end_ || intervals_.save_steps > 0 || intervals_.save_epochs > 0; }
  bool due_after_step(int64_t steps) const { return intervals_.due(intervals_.save_steps, steps); }
  bool due_after_epoch(int64_t epochs) const {
    return intervals_.due(intervals_.save_epochs, epochs);
  }
  // At the end of training; even if the last save failed or was skipped.
  bool due_at_end() const { return at_end_ || failed_ || skipped_; }

  // Training continues from the checkpoint of this step in its folder.
  void restore(int64_t step) { saved_step_ = kept_step_ = step; }
  // The best checkpoint in the folder, if there is any.
  void restore_best(const BestValue& best) { best_on_disk_ = best; }
  // The step that is saved, or is being saved; -1: none.
  int64_t saved_step() const { return saved_step_; }

  // Whether this step needs no save. best: the best value so far, which may be that of this step,
  // evaluated after it was saved.
  bool is_saved(int64_t step, const BestValue& best);
  // A save begins; end() or skip() ends it.
  Keep begin(int64_t step, const BestValue& best);
  bool saving() const { return saving_; }
  // How long training waits for the save, in seconds: 0 once the disk has not answered.
  double patience() const { return hangs_ ? 0 : kPatience; }
  // The save still runs on some rank after that time.
  void hang() { hangs_ = true; }
  // It has ended on all ranks; failed: on some. Returns the best value, of a checkpoint on the
  // disk.
  BestValue end(bool failed, const BestValue& best);
  bool failed() const { return failed_; }  // the last one
  // This step is not saved, because the save before still runs. Returns the same.
  BestValue skip(int64_t step, const BestValue& best);

 private:
  static constexpr double kPatience = 60;
  BestValue without(int64_t step, const BestValue& best) const;

  const TrainingIntervals intervals_;
  const bool at_end_;
  const int newest_;
  int64_t saved_step_ = -1, kept_step_ = -1;  // its predecessor
  BestValue saving_best_, best_on_disk_;      // being saved; saved
  bool saving_ = false;  // a save whose result the ranks have not agreed on yet
  bool failed_ = false, hangs_ = false;
  bool skipped_ = false;  // the last step to save was not
};

// Merges signals that ask for a checkpoint. A launcher sends one to all ranks, which notice it a
// few steps apart: that is one request.
class CheckpointRequests {
 public:
  static constexpr double kMaxSkewSeconds =
      1;  // seconds between the first and the last rank that notices

  // Call before agree_on_step(): returns whether this rank asks. signals: number received so
  // far. now: seconds.
  bool is_new(int signals, double now) {
    if (signals == seen_) return false;
    seen_ = signals;
    return signals > handled_ || now - handled_at_ > kMaxSkewSeconds;
  }
  // Call after the turn: returns whether all ranks save. asked: whether any rank asked. Ignores a
  // request right after one that counted: its rank did not know of that one yet. Returns the same
  // on all ranks.
  bool agree(bool asked, double now) {
    const bool counts = asked && !counted_before_;
    counted_before_ = counts;
    if (!counts) return false;
    ++handled_;
    handled_at_ = now;
    return true;
  }

 private:
  int seen_ = 0, handled_ = 0;
  double handled_at_ = -std::numeric_limits<double>::infinity();
  bool counted_before_ = false;
};

}  // namespace fleet
