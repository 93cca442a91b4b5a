// The sub-commands of fleetrun: `fleetrun NAME ...`. Each registers itself (base/commands.h) in its
// module. Only the first word can be a command; `fleetrun -- NAME` runs a program of that name.
#pragma once

#include <string>

#include "base/commands.h"

namespace fleet {

// Throws kUsage for a first word that resembles a command's name and is not a program, and for the
// name of a command in other tools: `fleetrun kill web`.
void refuse_mistyped(const std::string& word);

}  // namespace fleet
