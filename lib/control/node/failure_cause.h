// Finds the reason that a failed program gives: in its log, or in a record of its own.
#pragma once

#include <string>
#include <string_view>

#include "rendezvous/types.h"

namespace fleet {

// One line: the exception that ended a Python program; the message of an uncaught C++ exception, an
// assertion, a panic or Paddle's error summary; or the last line if it reads like an error. "" if
// the log has none of these or does not explain this end. `log`: as resolve_output() returns it.
// `signal`: the signal that ended the program, or 0.
std::string failure_cause(std::string_view log, int signal);

// A cause for messages: one line without control characters, at most 300 columns.
std::string cause_line(std::string_view text);

// Reads a file as torch.distributed's @record writes it: {"message": {"message": ..., "extraInfo":
// {"py_callstack": ..., "timestamp": ...}}}, or {"message": TEXT}. Empty if `path` is empty or
// names no such file, so that a program's file can never end a job. Reads at most 1 MiB and follows
// no link.
RecordedError read_error_file(const std::string& path);

}  // namespace fleet
