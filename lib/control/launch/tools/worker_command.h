// Commands of fleetrun that fleet-worker carries out, because they need the engine. Both programs
// register the command (FLEET_COMMAND): fleetrun with run_in_worker(), fleet-worker with the work.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/command_line.h"

namespace fleet {

// A Command::run_unparsed: checks the words against the syntax, or prints the help, and replaces
// this process by `fleet-worker NAME WORDS...`. name: the command's.
std::function<int(const std::vector<std::string>&)> run_in_worker(const std::string& name,
                                                                  CommandSyntax (*syntax)());

}  // namespace fleet
