// Total time that this process has waited for other ranks. Among ranks in lockstep, the one with
// the smallest total is the one that the others wait for.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace fleet {

// Adds its own lifetime to the total. Waits of several threads add up.
class PeerWaitTimer {
 public:
  PeerWaitTimer() : begun_(Clock::now()) {}
  ~PeerWaitTimer() {
    const auto waited = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begun_);
    total().fetch_add(waited.count(), std::memory_order_relaxed);
    of_this_thread() += waited.count();
  }
  PeerWaitTimer(const PeerWaitTimer&) = delete;

  // Of waiting that was measured otherwise: on a device. Any thread.
  static void add(int64_t nanoseconds) {
    total().fetch_add(nanoseconds, std::memory_order_relaxed);
  }

  // Total of this process, in nanoseconds. Any thread.
  static int64_t total_ns() { return total().load(std::memory_order_relaxed); }
  // The part of it in which the calling thread waited itself.
  static int64_t on_this_thread_ns() { return of_this_thread(); }

 private:
  using Clock = std::chrono::steady_clock;
  static std::atomic<int64_t>& total() {
    static std::atomic<int64_t> nanoseconds{0};
    return nanoseconds;
  }
  static int64_t& of_this_thread() {
    static thread_local int64_t nanoseconds = 0;
    return nanoseconds;
  }
  const Clock::time_point begun_;
};

}  // namespace fleet
