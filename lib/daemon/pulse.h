// Detects whether the peer of a client session is still alive.
#pragma once

#include <chrono>

namespace fleet {

// Both ends send a heartbeat every kBeat; after kSilence without one, the peer counts as lost.
class Pulse {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::milliseconds kBeat{500}, kSilence{3'000};

  explicit Pulse(Time now) : heard_(now), looked_(now) {}
  void heard(Time now) { heard_ = now; }
  // Call it every kBeat; returns false if the peer is lost.
  bool look(Time now) {
    // If this process was suspended, do not count that time against the peer.
    if (now - looked_ > 3 * kBeat) heard_ = now;
    looked_ = now;
    return now - heard_ < kSilence;
  }

 private:
  Time heard_, looked_;
};

}  // namespace fleet
