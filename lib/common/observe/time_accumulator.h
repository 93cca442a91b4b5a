// Accounts for the wall time of a run, for its summary.
#pragma once

#include <utility>

#include "base/clock.h"

namespace fleet {

// Seconds spent on one activity, in pieces. Time in nested pieces counts once. Not thread-safe.
class TimeAccumulator {
 public:
  explicit TimeAccumulator(Clock clock = monotonic_seconds) : clock_(std::move(clock)) {}
  double seconds() const { return seconds_; }

  // Counts from construction to the end of the scope.
  class Scope {
   public:
    explicit Scope(TimeAccumulator& account) : account_(account) {
      if (account_.depth_++ == 0) account_.begun_ = account_.clock_();
    }
    ~Scope() {
      if (--account_.depth_ == 0) account_.seconds_ += account_.clock_() - account_.begun_;
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    TimeAccumulator& account_;
  };

 private:
  Clock clock_;
  int depth_ = 0;
  double begun_ = 0, seconds_ = 0;
};

}  // namespace fleet
