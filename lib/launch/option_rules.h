// In which ways to start an option counts. Where it would have no effect it is refused.
#pragma once

#include <string>
#include <vector>

#include "launch/arguments.h"
#include "launch/options.h"

namespace fleet {

// An option that has no effect in this job, whether it is given or not.
struct IdleOption {
  std::string key;
  std::string what, next;  // of the refusal of the flag, where that is not made elsewhere
};
// kUsage for what --max_restart and the options of roles contradict.
std::vector<IdleOption> idle_options(const Settings& settings);

// kUsage for an option on the command line that has no effect where it is given (what the
// environment says is for other jobs as well), for options that contradict each other, and for
// values that no node would take: of a job that is started elsewhere they are found here, before
// anything is.
void check_options(const LaunchRequest& request, ArgumentsOf what);

}  // namespace fleet
