// What a program recorded of its own failure.
#pragma once

#include <string>

#include "rendezvous/types.h"

namespace fleet {

// Reads a file as torch.distributed's @record writes it: {"message": {"message": ..., "extraInfo":
// {"py_callstack": ..., "timestamp": ...}}}, or {"message": TEXT}. Empty where `path` is empty or
// names no such file: what a program leaves there never ends a job. At most 1 MiB is read, and no
// link is followed.
RecordedError read_error_file(const std::string& path);

}  // namespace fleet
