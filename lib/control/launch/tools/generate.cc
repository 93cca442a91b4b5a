// fleetrun generate JOB: fleet-worker continues a text with a language model.
#include "base/commands.h"
#include "launch/tools/worker_command.h"
#include "store/generate_options.h"

namespace fleet {

FLEET_COMMAND(generate) { define_worker_command(generate_syntax(), &def); }

}  // namespace fleet
