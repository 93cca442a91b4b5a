// Numbers as decimal numbers that print short.
#pragma once

#include <cstdlib>

#include "base/number_text.h"

namespace fleet {

// The number with so many significant digits.
inline double rounded_to_digits(double value, int digits) {
  return std::strtod(format_printf("%.*g", digits, value).c_str(), nullptr);
}

}  // namespace fleet
