// fleetd: one a node. It starts fleetrun there for clients elsewhere, and tells of what runs.
#pragma once

#include <string>
#include <vector>

namespace fleet {

// From a command line (without the program's name) to an exit code. Throws Error for what the user
// got wrong and what the machine refuses. From the main thread of a process that has no other.
int fleetd_main(const std::vector<std::string>& arguments);

std::string fleetd_help();

}  // namespace fleet
