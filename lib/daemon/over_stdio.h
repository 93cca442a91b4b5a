// The node's side of --via=ssh: fleetd's conversation over standard input and output, for one job.
#pragma once

#include <string>
#include <vector>

namespace fleet {

// fleetrun over_stdio. Takes one job, and ends with it; where the connection ends before, the job
// is stopped, with its grace time.
int over_stdio_command(const std::vector<std::string>& arguments);

}  // namespace fleet
