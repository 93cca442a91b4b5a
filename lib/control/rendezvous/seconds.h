// A duration as text for users.
#pragma once

#include <chrono>
#include <cstdio>
#include <string>

namespace fleet {

// "30 s", "2.75 s"
inline std::string seconds_text(std::chrono::milliseconds time) {
  if (time.count() % 1000 == 0) return std::to_string(time.count() / 1000) + " s";
  char text[32];
  std::snprintf(text, sizeof text, "%.3g s", static_cast<double>(time.count()) / 1000);
  return text;
}

}  // namespace fleet
