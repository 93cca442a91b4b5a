// fleetrun doctor: what is wrong with the nodes, before a job finds it out.
#pragma once

#include "base/command_line.h"

namespace fleet {

// Arguments as for a start, but that the program may be left out, and --format json. Prints what
// the checks have found on all nodes, the same on each; 0, or kExitPreflight where something has
// failed. From the main thread of a process that has no other.
Command doctor_command();

}  // namespace fleet
