// `fleetrun simulate`: how long a large job takes to meet, on this machine: the real rendezvous
// server, and in other processes the real clients of all its nodes, one TCP connection each.
#pragma once

#include "base/command_line.h"

namespace fleet {

Command simulate_command();

}  // namespace fleet
