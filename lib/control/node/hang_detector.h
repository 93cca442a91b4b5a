// Detects a hung rank from external observation.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "transport/failure_detector.h"

namespace fleet {

// Signs of life.
struct RankActivity {
  int64_t output = 0;      // bytes written
  double cpu_seconds = 0;  // of it and of all its descendants; less once one of these leaves
  int64_t ticks = 0;       // its own progress reports; 0: none
};

// Has no clock of its own. A rank that counts its progress hangs if the count has not increased for
// `timeout`, whatever else it does. Another rank hangs if for `timeout` it has written nothing and
// used almost no CPU time (less than 2 %: watchdog threads of a hung program use some). Time in
// which the caller did not run either does not count: all of the job was suspended.
class HangDetector {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // interval: between the calls of update().
  HangDetector(std::chrono::milliseconds timeout, std::chrono::milliseconds interval)
      : timeout_(timeout), late_(std::max(kLate, 3 * interval)) {}
  // How long the rank has made no progress, the first time this reaches the timeout; else 0.
  std::chrono::milliseconds update(const RankActivity& signs, Time now);

 private:
  // On a busy machine a call may be late although nothing was suspended.
  static constexpr std::chrono::milliseconds kLate{1'000};
  std::chrono::milliseconds timeout_, late_;
  RankActivity last_;
  std::optional<SuspensionDetector> suspension_;
  Time since_{};
  bool begun_ = false, reported_ = false;
};

}  // namespace fleet
