// Time as a value that tests can supply.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

namespace fleet {

// An event of state machines: step(event, now), at next_deadline() at the latest.
struct TimePassed {};

// Seconds since some fixed moment; never goes back.
using Clock = std::function<double()>;

double monotonic_seconds();
// CLOCK_MONOTONIC, in nanoseconds.
int64_t monotonic_ns();
// Likewise for a moment of std::chrono.
inline int64_t steady_ns(std::chrono::steady_clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}
// Seconds since 1970, UTC.
double unix_seconds();

// "0:07", "12:34", "1:02:03", "2d 03:04:05"; "-:--" if negative or not finite.
std::string format_duration(double seconds);
// For a limit or a time in a message: "30 s", "2.75 s".
std::string seconds_text(std::chrono::milliseconds time);

}  // namespace fleet
