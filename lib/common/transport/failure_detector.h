// Detects from heartbeats and their absence whether the other end of a stream is alive.
#pragma once

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/running_clock.h"

namespace fleet {

// How often both ends of a stream send heartbeats, and how long silence may last.
struct HeartbeatTimes {
  std::chrono::milliseconds heartbeat_interval{0}, max_silence{0};
};

// Supervises one peer. The lateness of this process's own polls extends the limit: a process that
// was suspended or starved cannot tell whether the peer was silent. Pure: the time is an argument.
// Not thread-safe.
class FailureDetector {
 public:
  using Time = std::chrono::steady_clock::time_point;

  FailureDetector(HeartbeatTimes times, Time now)
      : times_(times), clock_(now, times.heartbeat_interval), last_received_(now), heard_(now) {}
  const HeartbeatTimes& times() const { return times_; }
  void set_times(HeartbeatTimes times) {
    times_ = times;
    clock_.set_longest(times.heartbeat_interval);
  }
  void received(Time now) {
    last_received_ = now;
    heard_ = clock_.at(now);
    overdue_ = false;
  }
  Time last_received() const { return last_received_; }
  // Call it at next_poll(), at least every heartbeat interval. Returns false if the peer is lost:
  // its limit has passed, and so has another poll, before which what had arrived could be taken in.
  bool poll(Time now) {
    if (clock_.at(now) < heard_ + times_.max_silence) return true;
    return !std::exchange(overdue_, true);
  }
  Time next_poll(Time now) const {
    const auto interval = times_.heartbeat_interval;
    if (overdue_) return now + interval / 8;
    return std::min(now + interval, std::max(now, clock_.steady(heard_ + times_.max_silence)));
  }

 private:
  HeartbeatTimes times_;
  RunningClock clock_;
  Time last_received_;
  Time heard_;  // likewise, on clock_
  bool overdue_ = false;
};

}  // namespace fleet
