// fleetrun's man page and shell completions, generated from its options and sub-commands.
#pragma once

#include <string>

#include "base/command_line.h"
#include "base/option_group.h"

namespace fleet {

std::string man_page();
// For a program that prints its own help.
std::string man_page_of(const std::string& program, const std::string& help);
std::string bash_completion();
std::string fish_completion();
std::string zsh_completion();

// Whether its arguments are files or folders.
bool takes_files(const Command& command);

// All options before the program: those of a start, and those that start nothing.
const OptionGroup& start_and_inspect_options();

}  // namespace fleet
