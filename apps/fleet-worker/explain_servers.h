// --explain of a job with parameter servers.
#pragma once

#include "arguments.h"
#include "base/config.h"

namespace fleet {

// Prints the mode, and which server holds what. Predicts no times. kUsage for options that need a
// prediction; errors as of a start.
void explain_job_with_servers(const WorkerArguments& arguments, const ConfigTree& tree, int ranks,
                              int servers);

}  // namespace fleet
