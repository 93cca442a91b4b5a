// The command line and the environment, into a LaunchRequest.
#pragma once

#include <string>
#include <vector>

#include "launch/options.h"

namespace fleet {

// `arguments` without the program's own name. Flags win over their environment twins. kUsage for an
// unknown flag (naming the nearest), an unsupported one, a bad value, or a missing program.
LaunchRequest parse_arguments(const std::vector<std::string>& arguments);

}  // namespace fleet
