#include "base/number_text.h"

#include <cmath>
#include <cstdarg>
#include <cstdio>

namespace fleet {

std::string number_text(double value, int digits) {
  const double size = std::abs(value);
  // "%g" would write an exponent for a number with more digits before its point.
  const bool whole = size >= std::pow(10, digits - 1) && size < 1e8;
  return whole ? format_printf("%.0f", value) : format_printf("%.*g", digits, value);
}

std::string format_printf(const char* pattern, ...) {
  char text[512];
  va_list values;
  va_start(values, pattern);
  std::vsnprintf(text, sizeof text, pattern, values);
  va_end(values);
  return text;
}

}  // namespace fleet
