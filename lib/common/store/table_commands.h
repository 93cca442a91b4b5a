// `fleetrun table`: fleetrun shows its help and checks its words, fleet-worker does its work
// (`fleet-worker table ...`).
#pragma once

#include "base/command_line.h"

namespace fleet {

CommandSyntax table_syntax();

}  // namespace fleet
