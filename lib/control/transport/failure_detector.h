// Detects from heartbeats and their absence whether the other end of a stream is alive.
#pragma once

#include <algorithm>
#include <chrono>
#include <utility>

namespace fleet {

// How often both ends of a stream send heartbeats, and how long silence may last.
struct HeartbeatTimes {
  std::chrono::milliseconds heartbeat_interval{0}, max_silence{0};
};

// A process that polls its streams later than this after the last time was suspended itself.
inline std::chrono::milliseconds suspension_limit(const HeartbeatTimes& times) {
  return std::min(3 * times.heartbeat_interval, times.max_silence / 2);
}

// Detects that this process was suspended (stopped, starved): that time counts neither against a
// peer nor towards a deadline. Pure: the time is an argument. Not thread-safe.
class SuspensionDetector {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit SuspensionDetector(Time now) : last_poll_(now) {}
  Time last_poll() const { return last_poll_; }
  // Returns the time since the last call if it is longer than `limit`, otherwise 0.
  Time::duration poll(Time now, Time::duration limit) {
    const auto passed = now - std::exchange(last_poll_, now);
    return passed > limit ? passed : Time::duration(0);
  }

 private:
  Time last_poll_;
};

// Supervises one peer. Pure: the time is an argument. Not thread-safe.
class FailureDetector {
 public:
  using Time = std::chrono::steady_clock::time_point;

  FailureDetector(HeartbeatTimes times, Time now)
      : times_(times), last_received_(now), suspension_(now) {}
  const HeartbeatTimes& times() const { return times_; }
  void set_times(HeartbeatTimes times) { times_ = times; }
  void received(Time now) { last_received_ = now; }
  Time last_received() const { return last_received_; }
  // When the peer is lost if it stays silent and this process is not suspended.
  Time deadline() const { return last_received_ + times_.max_silence; }
  // Call it at least every heartbeat interval; returns false if the peer is lost.
  bool poll(Time now) {
    const auto suspended = suspension_.poll(now, suspension_limit(times_));
    last_received_ = std::max(last_received_, std::min(now, last_received_ + suspended));
    return now < deadline();
  }

 private:
  HeartbeatTimes times_;
  Time last_received_;
  SuspensionDetector suspension_;
};

}  // namespace fleet
