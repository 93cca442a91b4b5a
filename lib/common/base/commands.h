// The sub-commands of a program. Each registers itself in a file of its module, without an edit
// elsewhere:
//   FLEET_COMMAND(secret) { def.syntax = ...; def.run = run_secret; }
#pragma once

#include <string>
#include <vector>

#include "base/command_line.h"
#include "base/registry.h"

namespace fleet {

// All registered commands, sorted by name. Thread-safe. The first call defines them.
const std::vector<Command>& commands();

// The command of this name, or nullptr: then none is defined, so that a start without a command
// does not pay for the options of all of them.
const Command* find_command(const std::string& name);

bool register_command(const char* name, void (*define)(Command&));

#define FLEET_COMMAND(name) \
  FLEET_REGISTER(command_##name, ::fleet::Command& def, ::fleet::register_command, #name)

}  // namespace fleet
