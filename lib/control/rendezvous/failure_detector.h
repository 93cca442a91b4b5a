// Detects from heartbeats and their absence whether the other end of a stream is alive.
#pragma once

#include <algorithm>
#include <chrono>

namespace fleet {

// How often both ends of a stream send heartbeats, and how long silence may last.
struct HeartbeatTimes {
  std::chrono::milliseconds heartbeat_interval{0}, max_silence{0};
};

// If a process looks at its streams later than this after the last time, it was suspended itself
// (stopped, starved): it does not count that time against any peer.
inline std::chrono::milliseconds suspension_limit(const HeartbeatTimes& times) {
  return std::min(3 * times.heartbeat_interval, times.max_silence / 2);
}

// Supervises one peer. Pure: the time is an argument. Not thread-safe.
class FailureDetector {
 public:
  using Time = std::chrono::steady_clock::time_point;

  FailureDetector(HeartbeatTimes times, Time now)
      : times_(times), last_received_(now), last_poll_(now) {}
  const HeartbeatTimes& times() const { return times_; }
  void set_times(HeartbeatTimes times) { times_ = times; }
  void received(Time now) { last_received_ = now; }
  Time last_received() const { return last_received_; }
  // Call it every heartbeat interval; returns false if the peer is lost.
  bool poll(Time now) {
    if (now - last_poll_ > suspension_limit(times_)) last_received_ = now;
    last_poll_ = now;
    return now - last_received_ < times_.max_silence;
  }

 private:
  HeartbeatTimes times_;
  Time last_received_, last_poll_;
};

}  // namespace fleet
