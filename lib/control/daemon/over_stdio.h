// The node's side of --via=ssh: a client session over standard input and output, for one job.
#pragma once

#include "base/command_line.h"

namespace fleet {

// fleetrun over_stdio. Accepts one job and ends with it. If the connection ends first, stops the
// job with its grace time.
Command over_stdio_command();

}  // namespace fleet
