// Waiting for a condition with a time limit.
#pragma once

#include <unistd.h>

#include <functional>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"

namespace fleet::chaos {

// Seconds. Promised: all of a job has ended kStopLimit and the grace time after a fault. The others
// are against hanging only.
constexpr double kStopLimit = 2, kStartLimit = 60, kHangGuard = 30;

// Whether it was done within so many seconds.
inline bool wait_until(double seconds, const std::function<bool()>& done) {
  const double end = monotonic_seconds() + seconds;
  while (!done()) {
    if (monotonic_seconds() > end) return false;
    ::usleep(2'000);
  }
  return true;
}

// "" if there is no such file.
inline std::string text_of(const std::string& path) {
  try {
    return read_file(path);
  } catch (const Error&) {
    return {};
  }
}

}  // namespace fleet::chaos
