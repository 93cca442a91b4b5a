// What a program that failed says of the reason, in its log.
#pragma once

#include <string>
#include <string_view>

namespace fleet {

// One line: the exception that ended a Python program, what an uncaught C++ exception, an
// assertion, a panic or Paddle's error summary says, or the last line where that reads like an
// error. "" where the log has none of these, or says nothing of this end. `log`: as
// resolve_output() gives it. `signal`: what ended the program, or 0.
std::string failure_cause(std::string_view log, int signal);

// A cause as it is told: one line without control characters, of at most 300 columns.
std::string cause_line(std::string_view text);

}  // namespace fleet
