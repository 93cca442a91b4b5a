// fleetrun: from a command line to an exit code.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "launch/dry_run/via_plan.h"
#include "launch/options.h"

namespace fleet {

// A way to start the job elsewhere than on this node alone, --via=NAME.
struct Via {
  std::string name;
  std::string summary;                              // one line, for the help
  int (*start)(LaunchRequest) = nullptr;            // runs the job to its end; the exit code
  ViaPlan (*plan)(const LaunchRequest&) = nullptr;  // what that would run, for --dry_run
};

// What the program knows beyond this room.
struct LaunchExtras {
  std::vector<Via> vias;
  std::string commands_help;  // lines about its sub-commands
  // The help of one of them; "" where there is none of this name.
  std::function<std::string(const std::string&)> command_help;
  std::function<std::string(const std::string& shell)> completion;
};

// Checks everything that can be checked, then starts the guardian, meets the other nodes and runs
// the job. `arguments` without the program's name. Throws Error for what the user got wrong and
// what the machine refuses. From the main thread of a process that has no other.
int launch(const std::vector<std::string>& arguments, const LaunchExtras& extras = {});

}  // namespace fleet
