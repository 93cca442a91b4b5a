// What a rank of --debug_rank runs until its user comes.
#pragma once

#include <string>
#include <vector>

namespace fleet {

// The flag of fleetrun debug in a rank: `fleetrun debug --stand_in -- PROGRAM`.
inline constexpr char kPlaceholderFlag[] = "--stand_in";

// The command that runs in place of a rank's program until fleetrun debug starts that program
// (--debug_rank). It has the rank's environment, folder and cores.
std::vector<std::string> placeholder_command(const std::vector<std::string>& command);

}  // namespace fleet
