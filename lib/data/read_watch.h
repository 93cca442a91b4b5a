// Whether a thread that makes samples waits for a file system, and how it is given up.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>

namespace fleet::data {

// Thrown in a thread that was given up. It must end, and touch nothing but what it owns.
struct GivenUp {};

// Nothing in the kernel can be asked to stop waiting for a dead mount: a thread that reads from one
// is left behind. begin() and end() are for that thread, the others for one that watches it.
class ReadWatch {
 public:
  using Clock = std::chrono::steady_clock;

  void begin(int64_t sample) {
    const std::lock_guard lock(mutex_);
    sample_ = sample;
    since_ = Clock::now();
    reads_ = true;
    named_ = false;
  }
  // Throws GivenUp.
  void end() {
    const std::lock_guard lock(mutex_);
    reads_ = false;
    if (given_up_) throw GivenUp();
  }

  // Whether it has read one sample for so long; true once a read, for a line of the log.
  bool is_slow(Clock::duration limit, int64_t* sample) {
    const std::lock_guard lock(mutex_);
    if (!reads_for(limit) || named_) return false;
    *sample = sample_;
    return named_ = true;
  }
  // Whether it had read one sample for so long, and is now given up.
  bool give_up(Clock::duration limit, int64_t* sample) {
    const std::lock_guard lock(mutex_);
    if (!reads_for(limit)) return false;
    *sample = sample_;
    return given_up_ = true;
  }

 private:
  bool reads_for(Clock::duration limit) const {
    return reads_ && !given_up_ && Clock::now() - since_ >= limit;
  }

  std::mutex mutex_;
  int64_t sample_ = 0;
  Clock::time_point since_;
  bool reads_ = false, named_ = false, given_up_ = false;
};

}  // namespace fleet::data
