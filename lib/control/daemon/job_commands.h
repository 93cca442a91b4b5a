// The sub-commands of this module.
#pragma once

#include "base/command_line.h"

namespace fleet {

Command attach_command();
Command logs_command();
Command ls_command();
Command status_command();
Command stop_command();

// fleetrun over_stdio: the node's side of --via=ssh, a client session over standard input and
// output. Accepts one job and ends with it. If the connection ends first, stops the job with its
// grace time.
Command over_stdio_command();

}  // namespace fleet
