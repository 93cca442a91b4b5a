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

// A list as an option has it: "a,b", or as JSON where an entry has a comma.
std::string list_option(const std::vector<std::string>& entries);

}  // namespace fleet
