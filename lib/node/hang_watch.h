// Whether a rank still gets on, from what can be seen of it outside.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

namespace fleet {

// Signs of life, each only ever rising.
struct LifeSigns {
  int64_t output = 0;      // bytes that it has written
  double cpu_seconds = 0;  // of it and of all that it has started
  int64_t pulses = 0;      // what it says of its progress itself; 0: nothing
};

// No clock of its own. A rank that counts its own progress hangs when for `timeout` that has not
// risen, whatever else it does. Another one hangs when for `timeout` it has written nothing and has
// used next to no CPU time (less than 2 %: watchdog threads of a program that hangs use some).
class HangWatch {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit HangWatch(std::chrono::milliseconds timeout) : timeout_(timeout) {}
  // How long the rank has made no progress, the first time that this reaches the timeout; else 0.
  std::chrono::milliseconds update(const LifeSigns& signs, Time now);

 private:
  std::chrono::milliseconds timeout_;
  LifeSigns last_;
  Time since_{};
  bool begun_ = false, reported_ = false;
};

}  // namespace fleet
