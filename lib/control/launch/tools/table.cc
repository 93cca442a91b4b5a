// fleetrun table: see store/table_commands.h.
#include "base/commands.h"
#include "launch/tools/worker_command.h"
#include "store/table_commands.h"

namespace fleet {

FLEET_COMMAND(table) { define_worker_command(table_syntax(), &def); }

}  // namespace fleet
