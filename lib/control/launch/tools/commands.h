// The sub-commands of this module. All throw user errors, and return the exit code.
#pragma once

#include "base/command_line.h"

namespace fleet {

// fleetrun doctor: finds problems of the nodes before a job does. Takes the arguments of a start,
// but PROGRAM is optional and --format json is allowed. Prints the findings of all nodes, the same
// on each. Returns 0, or kExitPreflight if a check failed. Call it from the main thread of a
// process without other threads.
Command doctor_command();

// fleetrun secret [--new | --show]: creates the file of default_secret_path(), or prints a secret.
Command secret_command();

// fleetrun simulate measures how long a large job takes to join on this machine. It runs the real
// rendezvous server and, in other processes, the real clients of all nodes, with one TCP connection
// each.
Command simulate_command();

// fleetrun debug: debugs one rank of a job in the foreground. Exits with the code of the program
// that it ran.
Command debug_command();

}  // namespace fleet
