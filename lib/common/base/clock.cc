#include "base/clock.h"

#include <cmath>
#include <cstdio>

#include "base/number_text.h"

namespace fleet {

double monotonic_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

int64_t monotonic_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

double unix_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string format_duration(double seconds) {
  if (!(seconds >= 0) || seconds > 1e12) return "-:--";
  const long long total = std::llround(seconds);
  const long long days = total / 86400, hours = total / 3600 % 24, minutes = total / 60 % 60;
  char text[64];
  if (days > 0) {
    std::snprintf(text, sizeof text, "%lldd %02lld:%02lld:%02lld", days, hours, minutes,
                  total % 60);
  } else if (hours > 0) {
    std::snprintf(text, sizeof text, "%lld:%02lld:%02lld", hours, minutes, total % 60);
  } else {
    std::snprintf(text, sizeof text, "%lld:%02lld", minutes, total % 60);
  }
  return text;
}

std::string seconds_text(std::chrono::milliseconds time) {
  if (time.count() % 1000 == 0) return std::to_string(time.count() / 1000) + " s";
  return number_text(static_cast<double>(time.count()) / 1000, 3) + " s";
}

}  // namespace fleet
