#include "base/number_text.h"

#include <cmath>
#include <cstdio>

namespace fleet {

std::string number_text(double value, int digits) {
  const double size = std::abs(value);
  // "%g" would write an exponent for a number with more digits before its point.
  const bool whole = size >= std::pow(10, digits - 1) && size < 1e8;
  char text[40];
  if (whole) {
    std::snprintf(text, sizeof text, "%.0f", value);
  } else {
    std::snprintf(text, sizeof text, "%.*g", digits, value);
  }
  return text;
}

}  // namespace fleet
