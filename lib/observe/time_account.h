// Accounts for the wall time of a run, for its summary.
#pragma once

#include <utility>

#include "base/clock.h"

namespace fleet {

// Seconds spent on one activity, in pieces. Time in nested pieces counts once. Not thread-safe.
class TimeAccount {
 public:
  explicit TimeAccount(Clock clock = monotonic_seconds) : clock_(std::move(clock)) {}
  double seconds() const { return seconds_; }

  // Counts from construction to the end of the scope.
  class Piece {
   public:
    explicit Piece(TimeAccount& account) : account_(account) {
      if (account_.depth_++ == 0) account_.begun_ = account_.clock_();
    }
    ~Piece() {
      if (--account_.depth_ == 0) account_.seconds_ += account_.clock_() - account_.begun_;
    }
    Piece(const Piece&) = delete;
    Piece& operator=(const Piece&) = delete;

   private:
    TimeAccount& account_;
  };

 private:
  Clock clock_;
  int depth_ = 0;
  double begun_ = 0, seconds_ = 0;
};

}  // namespace fleet
