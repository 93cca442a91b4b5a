// fleetrun generate JOB: fleet-worker continues a text with a language model.
#include "base/commands.h"
#include "launch/tools/worker_command.h"
#include "store/generate_options.h"

namespace fleet {

FLEET_COMMAND(generate) {
  def.syntax = generate_syntax();
  def.run_unparsed = run_in_worker("generate", generate_syntax);
}

}  // namespace fleet
