// Estimates when training ends, from the steps of the last minutes: with the evaluations and saves
// between them. Pure: the time is an argument. Not thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>

namespace fleet {

class TimeLeft {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // The step that was the last one finished at `now`. A lower one begins anew (a restart).
  void update(int64_t step, Time now);
  // Seconds from the last update; nullopt if `target` is 0 (unknown), or before two steps.
  std::optional<double> seconds(int64_t target) const;

 private:
  struct Point {
    Time at;
    int64_t step;
  };
  static constexpr std::chrono::seconds kSpacing{10};
  static constexpr size_t kPoints = 32;  // five minutes

  std::deque<Point> points_;  // kSpacing apart, except the last
};

}  // namespace fleet
