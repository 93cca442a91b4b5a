// fleetrun: from a command line to an exit code.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "launch/planning/arguments.h"
#include "launch/planning/via_plan.h"

namespace fleet {

// A launch method for nodes other than this one, --via=NAME.
struct Via {
  std::string name;
  std::string summary;                           // one line, for the help
  int (*start)(const LaunchRequest&) = nullptr;  // runs the job to its end; returns the exit code
  ViaPlan (*plan)(const LaunchRequest&) = nullptr;  // the plan of start(), for --dry_run
};

// Parts of the program outside this module.
struct LaunchExtras {
  std::vector<Via> vias;
  // The help of one sub-command, "" if it does not exist; for "", one line for each of them.
  std::function<std::string(const std::string&)> command_help;
  std::function<std::string(const std::string& shell)> completion;
  std::string build_info;  // the second line of --version
};

// Checks everything that can be checked, then starts the guardian, joins the other nodes and runs
// the job. `arguments` excludes argv[0]. Throws Error for user errors and for requests that the
// machine rejects. Call it from the main thread of a process without other threads.
int launch(const std::vector<std::string>& arguments, const LaunchExtras& extras = {});

}  // namespace fleet
