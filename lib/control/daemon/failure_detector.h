// Detects whether the peer of a client session is still alive.
#pragma once

#include <chrono>

namespace fleet {

// Both ends send a heartbeat every kHeartbeatInterval; after kTimeout without one, the peer counts
// as lost.
class FailureDetector {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::milliseconds kHeartbeatInterval{500}, kTimeout{3'000};

  explicit FailureDetector(Time now) : last_received_(now), last_poll_(now) {}
  void received(Time now) { last_received_ = now; }
  // Call it every kHeartbeatInterval; returns false if the peer is lost.
  bool poll(Time now) {
    // If this process was suspended, do not count that time against the peer.
    if (now - last_poll_ > 3 * kHeartbeatInterval) last_received_ = now;
    last_poll_ = now;
    return now - last_received_ < kTimeout;
  }

 private:
  Time last_received_, last_poll_;
};

}  // namespace fleet
