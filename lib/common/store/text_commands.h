// `fleetrun tokenize` and `fleetrun train_tokenizer`: fleetrun shows their help and checks their
// words, fleet-worker does their work (`fleet-worker tokenize ...`).
#pragma once

#include "base/command_line.h"

namespace fleet {

CommandSyntax tokenize_syntax();
CommandSyntax train_tokenizer_syntax();

}  // namespace fleet
