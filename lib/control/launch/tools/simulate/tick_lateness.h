// How late the ticks of this process are. Simulated nodes share their ticker's thread: if that is
// late, the machine cannot run them, and the rendezvous is not to blame.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "transport/ticker.h"

namespace fleet {

// Measures from its construction on. Thread-safe.
class TickLateness {
 public:
  TickLateness();
  std::chrono::nanoseconds longest() const { return std::chrono::nanoseconds(longest_ns_); }

 private:
  Ticker::Time tick();

  std::atomic<int64_t> longest_ns_{0};
  Ticker::Time due_;  // for the ticker's thread
  Ticker ticker_;     // last: it uses the rest
};

// Whether nodes that are silent for `limit` may have been lost because of this.
inline bool explains_silence(std::chrono::nanoseconds late, std::chrono::milliseconds limit) {
  return 3 * late >= limit;
}

}  // namespace fleet
