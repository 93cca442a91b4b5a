// Finds out from a program's output why it ended: the exception itself, not the lines that a
// tracker, a warning or an exit hook prints after it. Pure. Not thread-safe.
//
// Candidates come from the tracebacks of Python (python_errors.cc), from a table of the marks that
// runtimes, libraries and compilers print (error_marks.cc), and from the forms that some languages
// give their errors (error_forms.cc). tests/control/diagnosis/endings has an output of each kind
// with the right answer.
#pragma once

#include <string>
#include <string_view>

namespace fleet {

// One line: the error that ended the program, or the last line if it reads like an error; "" if the
// log has neither, or does not explain this end. `log`: as resolve_output() returns it. `signal`:
// the signal that ended the program, or 0.
std::string failure_cause(std::string_view log, int signal);

// The last error near the end of the log of a program that runs, or has ended with 0; "" if none is
// found. only_exceptions: a line with the level of an error does not count.
std::string last_error(std::string_view log, bool only_exceptions);

// A cause for messages: one line without control characters, at most 300 columns.
std::string cause_line(std::string_view text);

}  // namespace fleet
