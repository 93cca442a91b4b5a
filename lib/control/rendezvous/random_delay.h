// Delays that spread what the nodes of a large job would do at once.
#pragma once

#include <chrono>
#include <random>

namespace fleet {

// In [0, time); 0 if `time` is 0. From the system's randomness. Thread-safe.
inline std::chrono::microseconds random_below(std::chrono::microseconds time) {
  if (time.count() == 0) return time;
  std::random_device random;
  return std::chrono::microseconds(random() % time.count());
}

}  // namespace fleet
