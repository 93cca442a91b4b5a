// --signals_to_handle.
#pragma once

#include <vector>

#include "base/config.h"

namespace fleet {

// The signals that stop the job. kUsage for a name that is none, or that no process can handle.
std::vector<int> stop_signals(const Settings& settings);

}  // namespace fleet
