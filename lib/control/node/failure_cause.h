// Finds the reason that a failed program gives in its log.
#pragma once

#include <string>
#include <string_view>

namespace fleet {

// One line: the exception that ended a Python program; the message of an uncaught C++ exception, an
// assertion, a panic or Paddle's error summary; or the last line if it reads like an error. "" if
// the log has none of these or does not explain this end. `log`: as resolve_output() returns it.
// `signal`: the signal that ended the program, or 0.
std::string failure_cause(std::string_view log, int signal);

// A cause for messages: one line without control characters, at most 300 columns.
std::string cause_line(std::string_view text);

}  // namespace fleet
