// The node's side of --via=ssh: fleetd's conversation over standard input and output, for one job.
#pragma once

#include "base/command_line.h"

namespace fleet {

// fleetrun over_stdio. Takes one job, and ends with it; where the connection ends before, the job
// is stopped, with its grace time.
Command over_stdio_command();

}  // namespace fleet
