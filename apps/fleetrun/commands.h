// The sub-commands of fleetrun: `fleetrun NAME ...`. A name counts only as the first word;
// `fleetrun -- NAME` runs a program of that name.
#pragma once

#include <string>
#include <vector>

#include "base/command_line.h"

namespace fleet {

// By name. Each lives in its own room: add it in commands.cc.
const std::vector<Command>& commands();

// The command that these arguments begin with, or nullptr.
const Command* find_command(const std::vector<std::string>& arguments);

// kUsage for a first word that is nearly a command's name, and nothing that can be run.
void refuse_mistyped(const std::string& word);

}  // namespace fleet
