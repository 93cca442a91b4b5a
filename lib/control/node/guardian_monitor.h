// Notices that the guardian hangs while it ends the ranks, for example in a write to a log on a
// file server that does not answer.
#pragma once

#include <chrono>
#include <functional>
#include <optional>

#include "transport/event_loop.h"
#include "transport/failure_detector.h"

namespace fleet {

// Sends pings from some moment on; on_pong() answers them. Time in which this process was suspended
// does not count. Not thread-safe: everything happens in the loop's thread.
class GuardianMonitor {
 public:
  // Longer than a guardian with thousands of ranks takes to kill them.
  static constexpr HeartbeatTimes kTimes{std::chrono::milliseconds(1'000),
                                         std::chrono::milliseconds(15'000)};

  // `on_hung` is called once per start(), when no ping was answered for times.max_silence.
  GuardianMonitor(EventLoop& loop, std::function<void()> ping, std::function<void()> on_hung,
                  HeartbeatTimes times = kTimes);
  // Begins after `delay`, or earlier if an earlier start() says so.
  void start(std::chrono::milliseconds delay);
  void on_pong();
  void stop();

 private:
  using Clock = std::chrono::steady_clock;
  void wait_until(Clock::time_point time);
  void tick();

  const HeartbeatTimes times_;
  const std::function<void()> ping_, on_hung_;
  LoopTimer timer_;
  std::optional<Clock::time_point> begin_;   // nullopt: not started
  std::optional<FailureDetector> detector_;  // from begin_ on
};

}  // namespace fleet
