// fleetrun doctor: finds problems of the nodes before a job does.
#pragma once

#include "base/command_line.h"

namespace fleet {

// Takes the arguments of a start, but PROGRAM is optional and --format json is allowed. Prints the
// findings of all nodes, the same on each. Returns 0, or kExitPreflight if a check failed. Call it
// from the main thread of a process without other threads.
Command doctor_command();

}  // namespace fleet
