// The sub-commands of fleetrun: `fleetrun NAME ...`. Only the first word can be a command;
// `fleetrun -- NAME` runs a program of that name.
#pragma once

#include <string>
#include <vector>

#include "base/command_line.h"

namespace fleet {

// All commands by name. Each lives in its own module; add it to the list in commands.cc.
const std::vector<Command>& commands();

// The command that the arguments start with, or nullptr.
const Command* find_command(const std::vector<std::string>& arguments);

// Throws kUsage for a first word that resembles a command's name and is not a program.
void refuse_mistyped(const std::string& word);

}  // namespace fleet
