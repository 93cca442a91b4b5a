// The parsed command line.
#pragma once

#include <string>
#include <vector>

#include "launch/planning/launch_config.h"

namespace fleet {

// --dry_run and its companions.
struct DryRun {
  bool wanted = false;
  std::string format = "table";  // or "json", "shell"
  int rank = -1;                 // --rank_env: show only this rank; -1: all
};

// The parsed command line, merged over the environment.
struct LaunchRequest {
  enum class Action { kRun, kPrintConfig, kPrintCompletion, kHelp, kVersion };
  Action action = Action::kRun;
  std::string help_on;  // kHelp: "" for usage, "all" for every option, or a command
  std::string shell;    // kPrintCompletion: the shell
  Settings settings;    // the options as text, with their origins: to print and to pass on
  LaunchConfig config;  // their meaning; only for kRun
  std::vector<std::string> program;  // the program and its arguments
  DryRun dry_run;
  std::string ignored;  // ignored options of other launchers and the reasons; often empty
};

}  // namespace fleet
