// Calls functions at their due times: one thread per process serves all tickers, possibly
// thousands.
#pragma once

#include <chrono>
#include <functional>

#include "base/mutex.h"

namespace fleet {

class Ticker {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // fire() returns its next due time; it runs first as soon as due_by() asks for it. It must be
  // quick, because others wait meanwhile.
  explicit Ticker(std::function<Time()> fire) : fire_(std::move(fire)) {}
  ~Ticker() { stop(); }
  Ticker(const Ticker&) = delete;
  // Runs fire() at `time` or earlier. Callable from any thread, also within fire().
  void due_by(Time time);
  // fire() does not run after stop() returns. Within fire() it does not wait for its end, so that
  // fire() may even destroy the ticker. Idempotent.
  void stop();

 private:
  class Thread;

  static inline Mutex mutex_;  // one for all: the thread holds tickers in the order of their times

  std::function<Time()> fire_;
  Time due_ FLEET_GUARDED_BY(mutex_) = Time::max();
  bool stopped_ FLEET_GUARDED_BY(mutex_) = false;
};

}  // namespace fleet
