// Estimates the rendezvous host's clock on another node from round-trip heartbeats (as NTP does).
// Pure. Not thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

namespace fleet {

// Nanoseconds on steady clocks: the node's own and the host's.
class ClockOffset {
 public:
  struct Estimate {
    int64_t host_ns = 0;
    int64_t error_ns = 0;  // upper bound
  };

  // A heartbeat left here at `sent`, the host saw it at `host`, and its echo arrived at `received`.
  // The host's clock at the midpoint is known to within half the round trip. A sample that
  // contradicts earlier ones (a machine was suspended) discards them.
  void sample(int64_t sent, int64_t host, int64_t received);
  // The host's time when the local clock shows `own`; nullopt before the first sample.
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
