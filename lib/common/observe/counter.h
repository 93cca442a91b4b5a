// Named counters and timers that any thread may add to, without a lock after the first lookup.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/mutex.h"

namespace fleet {

class Counter {
 public:
  void add(int64_t amount = 1) { value_.fetch_add(amount, std::memory_order_relaxed); }
  int64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> value_{0};
};

// Time spent in one place, summed over threads.
class Timer {
 public:
  void add(double seconds) {
    nanoseconds_.add(static_cast<int64_t>(seconds * 1e9));
    uses_.add();
  }
  double seconds() const { return static_cast<double>(nanoseconds_.value()) * 1e-9; }
  int64_t uses() const { return uses_.value(); }

 private:
  Counter nanoseconds_, uses_;
};

// Adds its own lifetime to a timer.
class ScopedTimer {
 public:
  explicit ScopedTimer(Timer& timer) : timer_(timer), begun_(monotonic_seconds()) {}
  ~ScopedTimer() { timer_.add(monotonic_seconds() - begun_); }
  ScopedTimer(const ScopedTimer&) = delete;
  ScopedTimer& operator=(const ScopedTimer&) = delete;

 private:
  Timer& timer_;
  double begun_;
};

// All counters and timers of a process or of a part of it. References stay valid as long as the
// object lives: look up a name once, then add to it.
class Counters {
 public:
  Counter& counter(const std::string& name);
  Timer& timer(const std::string& name);
  // Every counter by its name; every timer as "<name>.seconds" and "<name>.uses".
  std::map<std::string, double> snapshot() const;

 private:
  mutable Mutex mutex_;
  std::map<std::string, std::unique_ptr<Counter>> counters_ FLEET_GUARDED_BY(mutex_);
  std::map<std::string, std::unique_ptr<Timer>> timers_ FLEET_GUARDED_BY(mutex_);
};

}  // namespace fleet
