// Signals of a job: --signals_to_handle, and those that its clients forward.
#pragma once

#include <string>
#include <vector>

#include "base/config.h"

namespace fleet {

// The signals that stop the job. Throws kUsage for an unknown name, or a signal that cannot be
// handled.
std::vector<int> read_stop_signals(const Settings& settings);
// The signals that a client of a job forwards to it: all that stop it, SIGUSR1 and SIGUSR2. Without
// those that this process was started to ignore: nohup, or the background of a script.
std::vector<int> forwarded_signals();
// "SIGTERM,SIGINT"
std::string signal_names(const std::vector<int>& signals);

}  // namespace fleet
