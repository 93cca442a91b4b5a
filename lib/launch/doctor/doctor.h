// fleetrun doctor: what is wrong with the nodes, before a job finds it out.
#pragma once

#include <string>
#include <vector>

namespace fleet {

// Arguments as for a start, but that the program may be left out, and --format json. Prints what
// the checks have found on all nodes, the same on each; 0, or kExitPreflight where something has
// failed. Throws Error for bad usage. From the main thread of a process that has no other.
int doctor(const std::vector<std::string>& arguments);

}  // namespace fleet
