// Runs a helper program to its end.
#pragma once

#include <string>
#include <vector>

namespace fleet {

struct ProcessResult {
  int exit_code = 0;                 // 128 + n for a signal
  std::string output, error_output;  // what it wrote to standard output and standard error
};

// argv[0] is a path. Throws kIo if the program cannot start. Call it
// before threads exist.
ProcessResult run_process(const std::vector<std::string>& argv);

}  // namespace fleet
