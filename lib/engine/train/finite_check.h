// Tracks infinite and NaN losses, gradients, parameters and states over all ranks.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/error.h"
#include "exec/executor.h"
#include "optim/check_finite.h"
#include "train/job.h"
#include "train/rank_coordinator.h"

namespace fleet {

// Exit code of fleet-worker if train.on_nan ends the job, or if the last state could not be saved
// because it is not finite.
inline constexpr int kExitNotFinite = 118;

// Thrown equally on all ranks.
class NotFiniteError : public Error {
 public:
  NotFiniteError(const std::string& what, const std::string& where, const std::string& next)
      : Error(ErrorCode::kInternal, what, where, next) {}
};

OnNan on_nan_of(const Job& job);

// Updates whose loss or gradients were not finite, since the last poll().
struct BadUpdates {
  int64_t count = 0;  // the largest count of any rank
  int64_t step = 0;   // step of the first one, from 0
  int rank = -1;      // rank of the first one; -1: all ranks
  std::string what;   // its bad input: "loss", or the parameter of the gradient
  int suspect() const { return what == "loss" ? rank : -1; }  // whose loss alone it was; -1: none
  std::string text() const;                                   // "the loss of rank 1 is not finite"
  std::string left_out() const;  // "the loss of rank 1 is not finite: its update was left out"
};

// All ranks make the same calls in the same order. Not thread-safe.
class FiniteCheck {
 public:
  // The arguments must outlive this object. The program may or may not contain a check of finite
  // values (optim/check_finite.h).
  FiniteCheck(Executor& executor, Device& device, RankCoordinator& control, int rank, OnNan on_nan);

  OnNan on_nan() const { return on_nan_; }
  // Whether the program checks its updates: not with kContinue, nor with loss scaling.
  bool enabled() const { return record_ != kNoVar; }
  bool skips() const { return enabled() && on_nan_ == OnNan::kSkip; }
  // Call before each training step.
  void step_begins(const StepInfo& info);
  // Waits for the steps so far: call it where the host waits anyway.
  std::optional<BadUpdates> poll();
  // The number of bad updates since the start, as of the last poll().
  int64_t found() const { return found_; }
  // Whether some ranks left out an update that others applied, as of the last poll(): a loss was
  // not finite, but the gradients were, and the job will stop. (With kSkip, the ranks agree before
  // each update.) The parameters of the ranks differ since then. Equal on all ranks.
  bool ranks_apart() const { return ranks_apart_; }
  // Why training makes no progress: the last `max` updates or more were all left out. "" if it
  // does, or if max is 0. Of a gradient that a smaller loss scale may repair, only those at scale 1
  // count. Waits like poll(); equal on all ranks.
  std::string stuck(int64_t max);
  // The name of a parameter or state to be saved that is not finite, "" if none. Passes
  // over sums of gradients (gradient_merge) that a check will leave out. The same on all ranks.
  // Waits.
  std::string bad_state();

 private:
  const std::vector<int64_t>& inputs_at(int64_t step);
  int64_t step_of(int64_t check) const;

  Executor& executor_;
  Device& device_;
  RankCoordinator& control_;
  const int rank_;
  const OnNan on_nan_;
  VarId record_ = kNoVar, skipped_ = kNoVar;
  Predicate when_;  // when updates run
  // Inputs of the check, by the executor's Plan: 0 the loss, else 1 + the parameter's number.
  std::map<int, std::vector<int64_t>> inputs_;
  // The Plans of the steps since the last poll(), each with its first step.
  std::vector<std::pair<int64_t, int>> selected_;
  std::set<VarId> left_out_;  // gradients that are checked, and left out if they are not finite
  std::vector<std::string> names_;  // parameters, in the order of their creation
  int64_t checks_ = 0, found_ = 0;  // checks already evaluated; bad updates found
  bool ranks_apart_ = false;
  int64_t first_step_ = -1, last_step_ = -1;  // steps since the last poll(); -1: none
};

}  // namespace fleet
