// --signals_to_handle.
#pragma once

#include <string>
#include <vector>

#include "base/config.h"

namespace fleet {

// The signals that stop the job. Throws kUsage for an unknown name, or a signal that cannot be
// handled.
std::vector<int> read_stop_signals(const Settings& settings);
// "SIGTERM,SIGINT"
std::string signal_names(const std::vector<int>& signals);

}  // namespace fleet
