// What the clock of the rendezvous's host shows, estimated on another node from the beats that go
// to and fro (as NTP does). Pure. Not thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

namespace fleet {

// Nanoseconds of steady clocks: the node's own, and the host's.
class ClockOffset {
 public:
  struct Estimate {
    int64_t host_ns = 0;
    int64_t error_ns = 0;  // at most so far off
  };

  // A beat left here at `sent`, the host saw it at `host`, its echo came at `received`: what the
  // host's clock showed in the middle is at most half the way there and back off. What cannot be
  // true together with earlier samples (a machine was suspended) makes them forgotten.
  void sample(int64_t sent, int64_t host, int64_t received);
  // The host's time when the own clock shows `own`; nothing before the first sample.
  std::optional<Estimate> at(int64_t own) const;

 private:
  struct Sample {
    int64_t middle;  // own clock
    int64_t offset;  // host - own
    int64_t error;
  };
  static int64_t error_of(const Sample& sample, int64_t own);
  std::deque<Sample> samples_;
};

}  // namespace fleet
