// Losses, gradients, parameters and states that are infinite or NaN: what ranks know of them
// together.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/error.h"
#include "exec/executor.h"
#include "optim/check_finite.h"
#include "train/control.h"
#include "train/job.h"

namespace fleet {

// What fleet-worker ends with where train.on_nan ends the job, or where its last state could not be
// saved because it is not finite.
inline constexpr int kExitNotFinite = 118;

// The same on all ranks.
class NotFiniteError : public Error {
 public:
  NotFiniteError(const std::string& what, const std::string& where, const std::string& next)
      : Error(ErrorCode::kInternal, what, where, next) {}
};

OnNan on_nan_of(const Job& job);

// Updates whose loss or gradients were not finite, since somebody looked before.
struct BadUpdates {
  int64_t count = 0;             // the most of any rank
  int64_t step = 0;              // the first of them, from 0, and what was bad in it
  int rank = -1;                 // whose; -1: all ranks'
  std::string what;              // "loss", or a parameter whose gradient it is
  std::string text() const;      // "the loss of rank 1 is not finite"
  std::string left_out() const;  // "the loss of rank 1 is not finite: its update was left out"
};

// All ranks make the same calls in the same order. Not thread-safe.
class FiniteWatch {
 public:
  // What it is given must outlive it. The program has a check of finite values or not
  // (optim/check_finite.h).
  FiniteWatch(Executor& executor, Device& device, Control& control, int rank, OnNan on_nan);

  OnNan on_nan() const { return on_nan_; }
  // Whether the program looks at its updates: not with kContinue, nor with a scaled loss.
  bool looks() const { return record_ != kNoVar; }
  bool skips() const { return looks() && on_nan_ == OnNan::kSkip; }
  // Before each training step.
  void step_begins(const StepInfo& info);
  // Waits for the steps so far: for where the host waits anyway.
  std::optional<BadUpdates> look();
  // What of the state to be saved is not finite: the name of a parameter or state, "" if nothing.
  // The same on all ranks. Waits.
  std::string bad_state();

 private:
  int64_t step_of(int64_t check) const;

  Executor& executor_;
  Device& device_;
  Control& control_;
  const int rank_;
  const OnNan on_nan_;
  VarId record_ = kNoVar;
  Predicate when_;                  // updates are made
  std::vector<int64_t> inputs_;     // of the check: 0 the loss, else 1 + the parameter's number
  std::vector<std::string> names_;  // of parameters, in the order they were made
  int64_t checks_ = 0;              // that were looked at
  int64_t first_step_ = -1, last_step_ = -1;  // since then; -1: none
};

}  // namespace fleet
