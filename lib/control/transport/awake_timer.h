// A timer that does not count the time in which its own process did not run.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "transport/event_loop.h"
#include "transport/failure_detector.h"

namespace fleet {

// A deadline that moves by the time in which this process was suspended (Ctrl-Z, a batch system) or
// starved. Pure: the time is an argument.
class AwakeDeadline {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // How often to look, and how late a look shows a suspension.
  static constexpr std::chrono::milliseconds kInterval{250}, kLate{1'000};

  AwakeDeadline(Time now, Time::duration delay) : due_(now + delay), suspension_(now) {}
  // Whether it has come. Call it at next() at the latest.
  bool reached(Time now) {
    due_ += suspension_.poll(now, kLate);
    return now >= due_;
  }
  Time next() const { return std::min(due_, suspension_.last_poll() + kInterval); }

 private:
  Time due_;
  SuspensionDetector suspension_;
};

// LoopTimer with such a deadline. Not thread-safe: use it in the loop's thread.
class AwakeTimer {
 public:
  explicit AwakeTimer(EventLoop& loop) : timer_(loop) {}
  void after(std::chrono::steady_clock::duration delay, LoopTimer::Handler handler) {
    deadline_.emplace(std::chrono::steady_clock::now(), delay);
    handler_ = std::move(handler);
    wait();
  }
  void cancel() { timer_.cancel(); }

 private:
  void wait() {
    timer_.at(deadline_->next(), [this] {
      if (!deadline_->reached(std::chrono::steady_clock::now())) return wait();
      std::exchange(handler_, nullptr)();
    });
  }

  LoopTimer timer_;
  std::optional<AwakeDeadline> deadline_;
  LoopTimer::Handler handler_;
};

}  // namespace fleet
