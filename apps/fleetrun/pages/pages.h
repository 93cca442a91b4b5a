// fleetrun's man page and its completion for shells, from the definitions of its options and
// sub-commands.
#pragma once

#include <string>

#include "base/option_group.h"

namespace fleet {

std::string man_page();
// Of a program that prints its own help.
std::string man_page_of(const std::string& program, const std::string& help);
std::string bash_completion();
std::string zsh_completion();

// All that may stand before the program: options of a start, and those that only look.
const OptionGroup& start_and_look_options();

}  // namespace fleet
