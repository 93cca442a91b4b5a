// Formats lines with printf patterns, for logs that other programs read.
#pragma once

#include <cstdio>
#include <string>

namespace fleet {

// Like snprintf(3); cuts text longer than 511 characters.
std::string format_printf(const char* pattern, auto... values) {
  char text[512];
  std::snprintf(text, sizeof text, pattern, values...);
  return text;
}

}  // namespace fleet
