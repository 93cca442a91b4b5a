// Detects a hung rank from external observation.
#pragma once

#include <chrono>
#include <cstdint>

#include "base/running_clock.h"

namespace fleet {

// Signs of life.
struct RankActivity {
  int64_t output = 0;      // bytes written
  double cpu_seconds = 0;  // its own and that of all its descendants; less once one of these leaves
  int64_t ticks = 0;       // its own progress reports; 0: none
};

// Has no clock of its own. A rank that counts its progress hangs if the count has not increased for
// `timeout`, whatever else it does. Another rank hangs if for `timeout` it has written nothing and
// used almost no CPU time (less than 2 %: watchdog threads of a hung program use some). Time in
// which the caller did not run either does not count: all of the job was suspended.
class HangDetector {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // longest: counts at most between two updates. If an update comes later, this process was
  // suspended, perhaps with the rank.
  explicit HangDetector(std::chrono::milliseconds timeout,
                        Time::duration longest = Time::duration::max())
      : timeout_(timeout), clock_({}, longest) {}
  // How long the rank has made no progress, the first time this reaches the timeout; else 0.
  std::chrono::milliseconds update(const RankActivity& signs, Time now);

 private:
  std::chrono::milliseconds timeout_;
  RunningClock clock_;
  RankActivity last_;
  Time since_{};
  bool begun_ = false, reported_ = false;
};

}  // namespace fleet
