// Lines with the numbers of a printf pattern, for logs that other programs read.
#pragma once

#include <cstdio>
#include <string>

namespace fleet {

// As snprintf(3); what is longer than 511 characters is cut.
std::string printed(const char* pattern, auto... values) {
  char text[512];
  std::snprintf(text, sizeof text, pattern, values...);
  return text;
}

}  // namespace fleet
