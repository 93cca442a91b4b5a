// Numbers in text: in tables, messages and charts, and by printf's patterns.
#pragma once

#include <string>

namespace fleet {

// `digits` significant digits, without zeros at the end, and never fewer than the number has before
// its point: with 4 digits "3.142", "0.0123", "11720". An exponent only below 1e-4 and from 1e8 on:
// "1.2e-07". "nan" and "inf" for numbers that are not finite.
std::string number_text(double value, int digits = 6);
// Like snprintf(3); cuts text longer than 511 characters.
[[gnu::format(printf, 1, 2)]] std::string format_printf(const char* pattern, ...);

}  // namespace fleet
