// What a user gave, as a command line for another fleetrun.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/config.h"

namespace fleet {

// "--key=value" for every option that was given, on the command line or in the environment, but for
// those of `except` and those that have no effect in this job.
std::vector<std::string> given_flags(const Settings& settings, const std::set<std::string>& except);

}  // namespace fleet
