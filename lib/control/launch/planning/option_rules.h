// Rules on which options apply to which kind of start. Options without effect are rejected.
#pragma once

#include <string>
#include <vector>

#include "launch/planning/arguments.h"

namespace fleet {

// An option that has no effect in this job, whether it is given or not.
struct InapplicableOption {
  std::string key;
  std::string what, next;  // message and advice, unless another check rejects the flag
};
std::vector<InapplicableOption> inapplicable_options(const LaunchRequest& request);

// Throws kUsage for an option on the command line that has no effect (values from the environment
// may be meant for other jobs), for options that contradict each other, and for invalid values. A
// job started with --via is checked here, before anything starts.
void check_options(const LaunchRequest& request, ArgumentsFor what);

}  // namespace fleet
