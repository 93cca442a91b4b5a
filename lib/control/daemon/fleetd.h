// fleetd runs once per node. It starts fleetrun for remote clients and reports on the jobs of the
// node.
#pragma once

#include <string>
#include <vector>

namespace fleet {

// Runs a command line (without argv[0]) and returns an exit code. Throws Error for user errors and
// for requests that the machine rejects. Call it from the main thread of a process without other
// threads.
int fleetd_main(const std::vector<std::string>& arguments);

std::string fleetd_help();

}  // namespace fleet
