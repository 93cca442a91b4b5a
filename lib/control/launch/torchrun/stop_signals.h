// --signals_to_handle.
#pragma once

#include <vector>

#include "base/config.h"

namespace fleet {

// The signals that stop the job. Throws kUsage for an unknown name, or a signal that cannot be
// handled.
std::vector<int> stop_signals(const Settings& settings);

}  // namespace fleet
