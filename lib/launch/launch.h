// fleetrun: from a command line to an exit code.
#pragma once

#include <string>
#include <vector>

namespace fleet {

// Checks everything that can be checked, then starts the guardian, meets the other nodes and runs
// the job. `arguments` without the program's name. Throws Error for what the user got wrong and
// what the machine refuses. From the main thread of a process that has no other.
int launch(const std::vector<std::string>& arguments);

}  // namespace fleet
