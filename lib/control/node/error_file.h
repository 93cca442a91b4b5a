// The error that a program recorded in a file of its own.
#pragma once

#include <string>

#include "transport/control_messages.h"

namespace fleet {

// Reads a file as torch.distributed's @record writes it: {"message": {"message": ..., "extraInfo":
// {"py_callstack": ..., "timestamp": ...}}}, or {"message": TEXT}. Empty if `path` is empty or
// names no such file, so that a program's file can never end a job. Reads at most 1 MiB and follows
// no link.
RecordedError read_error_file(const std::string& path);

}  // namespace fleet
