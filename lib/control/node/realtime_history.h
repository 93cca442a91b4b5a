// What CLOCK_REALTIME was while CLOCK_MONOTONIC ran: profilers of other programs stamp with the
// former, which may be set or slewed. Pure: the clocks are arguments. Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "rendezvous/types.h"

namespace fleet {

class RealtimeHistory {
 public:
  // Realtime was read between two readings of the monotonic clock, in nanoseconds. Call it every
  // second.
  void sample(int64_t before_ns, int64_t realtime_ns, int64_t after_ns);
  void sample_clocks();  // the process's own

  // The differences, oldest first: each holds from its `since_ns` to the next one's. A difference
  // is a new one if it moved by more than a slew between two samples; the last 1,000 are kept.
  const std::vector<wire::RealtimeOffset>& offsets() const { return offsets_; }

 private:
  std::vector<wire::RealtimeOffset> offsets_;
};

struct MonotonicTime {
  int64_t ns = 0;
  int64_t error_ns = 0;
};
// The monotonic time at which the realtime clock showed this. If it was set back, it showed some
// times twice: the later one. If it was set forward, it never showed some: the moment of that.
// nullopt without offsets.
std::optional<MonotonicTime> to_monotonic(std::span<const wire::RealtimeOffset* const> offsets,
                                          int64_t realtime_ns);

}  // namespace fleet
