// The command line of `fleetrun generate`, which fleetrun passes to fleet-worker. Both read it.
#pragma once

#include "base/command_line.h"

namespace fleet {

CommandSyntax generate_syntax();

}  // namespace fleet
