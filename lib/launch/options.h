// The launcher's options: their names, environment twins and defaults, checked and with origins.
#pragma once

#include <string>
#include <vector>

#include "base/config.h"
#include "base/option_group.h"

namespace fleet {

// Where the rendezvous of several nodes listens, unless --rdzv_port or --master says otherwise. A
// job on a single node takes a free port.
inline constexpr int kDefaultRendezvousPort = 6768;
// The first endpoint port of every node of several, unless --start_port says otherwise (Paddle's).
// A job on a single node takes free ports.
inline constexpr int kDefaultStartPort = 6070;

// Declared in launch/options/*.cc.
const OptionGroup& launch_option_group();
const std::vector<Option>& launch_options();  // its options
// Those that start nothing: --help, --dry_run and what goes with it. They are no configuration.
const OptionGroup& look_at_options();

// Its keys, types, ranges, defaults and help lines, in the same order.
const Schema& launch_schema();

// Whether it stands on the command line: what the environment says is for other jobs as well.
bool given_by_flag(const Settings& settings, const std::string& key);

// For --print_config: every value and where it came from, "none" for what is not given.
std::string print_options(const Settings& settings);

// --dry_run and what goes with it.
struct DryRun {
  bool wanted = false;
  std::string format = "table";  // or "json", "shell"
  int rank = -1;                 // --rank_env: only this one
};

// The command line, after the environment has been laid under it.
struct LaunchRequest {
  enum class Action { kRun, kPrintConfig, kPrintCompletion, kHelp, kVersion };
  Action action = Action::kRun;
  std::string help_on;  // kHelp: "", "all" for every option, or a command
  std::string shell;    // kPrintCompletion: for this one
  Settings settings;
  std::vector<std::string> program;  // and everything after it
  DryRun dry_run;
  std::string idle;  // options of other launchers that have no meaning here, and why; often none
};

// Usage, options, three examples. At most a screen, unless it is `all` options in their groups.
std::string launch_help(bool all = false);
std::string help_tail();       // what follows the options there
std::string launch_version();  // "fleetrun 0.1.0"

}  // namespace fleet
