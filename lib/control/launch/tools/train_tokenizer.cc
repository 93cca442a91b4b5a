// fleetrun train_tokenizer: see store/text_commands.h.
#include "base/commands.h"
#include "launch/tools/worker_command.h"
#include "store/text_commands.h"

namespace fleet {

FLEET_COMMAND(train_tokenizer) { define_worker_command(train_tokenizer_syntax(), &def); }

}  // namespace fleet
