// The sub-commands of fleetrun: `fleetrun NAME ...`. A name counts only as the first word;
// `fleetrun -- NAME` runs a program of that name.
#pragma once

#include <string>
#include <vector>

namespace fleet {

struct Command {
  std::string name;
  std::string summary;                                        // one line, for the help
  int (*run)(const std::vector<std::string>& arguments) = 0;  // without the name; the exit code
};

// By name. Each lives in its own room: add its line in commands.cc.
const std::vector<Command>& commands();

// The command that these arguments begin with, or nullptr.
const Command* find_command(const std::vector<std::string>& arguments);

}  // namespace fleet
