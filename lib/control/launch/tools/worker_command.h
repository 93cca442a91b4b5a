// Sub-commands whose work fleet-worker does.
#pragma once

#include "base/command_line.h"

namespace fleet {

// Defines a command of this syntax (whose program is "fleetrun NAME") that checks its words and
// then becomes `fleet-worker NAME WORDS...`.
void define_worker_command(CommandSyntax syntax, Command* command);

}  // namespace fleet
