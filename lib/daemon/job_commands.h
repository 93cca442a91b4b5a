// fleetrun ls, status, logs, attach and stop.
#pragma once

#include <string>
#include <vector>

namespace fleet {

// `arguments` without the command's own name; the exit code. Throw Error.
int ls_command(const std::vector<std::string>& arguments);
int status_command(const std::vector<std::string>& arguments);
int logs_command(const std::vector<std::string>& arguments);
int attach_command(const std::vector<std::string>& arguments);
int stop_command(const std::vector<std::string>& arguments);

}  // namespace fleet
