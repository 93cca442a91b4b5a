// The options that a user gave, as a command line for another fleetrun.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "launch/planning/arguments.h"

namespace fleet {

// "--key=value" for every option given on the command line or in the environment, without those in
// `except` and those that have no effect in this job.
std::vector<std::string> given_flags(const LaunchRequest& request,
                                     const std::set<std::string>& except);

// A list as the value of an option: "a,b", or JSON if an entry contains a comma.
std::string list_option(const std::vector<std::string>& entries);

}  // namespace fleet
