// fleetrun tokenize: see store/text_commands.h.
#include "base/commands.h"
#include "launch/tools/worker_command.h"
#include "store/text_commands.h"

namespace fleet {

FLEET_COMMAND(tokenize) { define_worker_command(tokenize_syntax(), &def); }

}  // namespace fleet
