// Whether the other end of a conversation still lives.
#pragma once

#include <chrono>

namespace fleet {

// Both ends beat every kBeat; silence for kSilence means that the other one is gone.
class Pulse {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::milliseconds kBeat{500}, kSilence{3'000};

  explicit Pulse(Time now) : heard_(now), looked_(now) {}
  void heard(Time now) { heard_ = now; }
  // To be called every kBeat; false where the other end is gone.
  bool look(Time now) {
    // Time that this process slept itself is not the other's silence.
    if (now - looked_ > 3 * kBeat) heard_ = now;
    looked_ = now;
    return now - heard_ < kSilence;
  }

 private:
  Time heard_, looked_;
};

}  // namespace fleet
