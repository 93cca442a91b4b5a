// fleetrun secret [--new | --show].
#pragma once

#include "base/command_line.h"

namespace fleet {

// Creates the file of default_secret_path(), or prints a secret.
Command secret_command();

}  // namespace fleet
