// `fleetrun simulate` measures how long a large job takes to join on this machine. It runs the real
// rendezvous server and, in other processes, the real clients of all nodes, with one TCP connection
// each.
#pragma once

#include "base/command_line.h"

namespace fleet {

Command simulate_command();

}  // namespace fleet
