// Detects that a thread which makes samples is waiting for a file system, and abandons it.
#pragma once

#include <chrono>
#include <cstdint>

#include "base/mutex.h"

namespace fleet::data {

// Thrown in an abandoned thread. The thread must end, and may access only what it owns.
struct ReadAbandoned {};

// A thread that reads from a dead mount cannot be stopped in the kernel, so it is abandoned. That
// thread calls begin() and end(); the other methods are for a thread that watches it.
class ReadWatchdog {
 public:
  using Clock = std::chrono::steady_clock;

  void begin(int64_t sample) {
    const MutexLock lock(mutex_);
    sample_ = sample;
    since_ = Clock::now();
    reads_ = true;
    named_ = false;
  }
  // Throws ReadAbandoned if the thread was abandoned.
  void end() {
    const MutexLock lock(mutex_);
    reads_ = false;
    if (given_up_) throw ReadAbandoned();
  }

  // Whether it has been reading one sample for at least `limit`; true once per read, for a log
  // line.
  bool is_slow(Clock::duration limit, int64_t* sample) {
    const MutexLock lock(mutex_);
    if (!reads_for(limit) || named_) return false;
    *sample = sample_;
    return named_ = true;
  }
  // Abandons the thread if it has been reading one sample for at least `limit`; returns whether it
  // did.
  bool abandon(Clock::duration limit, int64_t* sample) {
    const MutexLock lock(mutex_);
    if (!reads_for(limit)) return false;
    *sample = sample_;
    return given_up_ = true;
  }

 private:
  bool reads_for(Clock::duration limit) const FLEET_REQUIRES(mutex_) {
    return reads_ && !given_up_ && Clock::now() - since_ >= limit;
  }

  Mutex mutex_;
  int64_t sample_ FLEET_GUARDED_BY(mutex_) = 0;
  Clock::time_point since_ FLEET_GUARDED_BY(mutex_);
  bool reads_ FLEET_GUARDED_BY(mutex_) = false;
  bool named_ FLEET_GUARDED_BY(mutex_) = false;
  bool given_up_ FLEET_GUARDED_BY(mutex_) = false;
};

}  // namespace fleet::data
