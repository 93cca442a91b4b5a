#include "base/number_text.h"

#include <cmath>
#include <cstdarg>
#include <cstdio>

namespace fleet {

std::string number_text(double value, int digits) {
  const double size = std::abs(value);
  // "%g" would write an exponent for a number with more digits before its point.
  const bool whole = size >= std::pow(10, digits - 1) && size < 1e8;
  return whole ? printed("%.0f", value) : printed("%.*g", digits, value);
}

std::string printed(const char* format, ...) {
  char text[256];
  std::va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return text;
}

}  // namespace fleet
