// The launcher's options: their names, environment twins and defaults, checked and with origins.
#pragma once

#include <string>
#include <vector>

#include "base/config.h"

namespace fleet {

// Where the rendezvous of several nodes listens, unless --rdzv_port or --master says otherwise. A
// job on a single node takes a free port.
inline constexpr int kDefaultRendezvousPort = 6768;
// The first endpoint port of every node of several, unless --start_port says otherwise (Paddle's).
// A job on a single node takes free ports.
inline constexpr int kDefaultStartPort = 6070;

struct Option {
  std::string key;                       // in the configuration; "--" + key is the flag
  std::vector<std::string> aliases;      // other flags
  std::vector<std::string> environment;  // twins; the first that is set counts
  std::string value;                     // what the value is, for the help: "LIST"; empty: a flag
  bool optional = false;                 // the default stands for "not given"
  bool common = false;                   // --help shows it; the others only --help all
  std::string group;                     // its subject, filled in by OptionGroup

  bool is_flag() const { return value.empty(); }
  // As they are written: "--tee", and what else means it: "-t" where an alias is one letter.
  std::vector<std::string> flags() const;
};
// Declared in launch/options/*.cc.
const std::vector<Option>& launch_options();

// Keys, types, ranges, defaults and help lines of launch_options(), in their order.
const Schema& launch_schema();

// For --print_config: every value and where it came from, "none" for what is not given.
std::string print_options(const Settings& settings);

// A flag of Paddle's or torchrun's launchers that has no meaning here (yet), and why; "" otherwise.
std::string unsupported_reason(const std::string& flag);

// --dry_run and what goes with it.
struct DryRun {
  bool wanted = false;
  std::string format = "table";  // or "json", "shell"
  int rank = -1;                 // --rank_env: only this one
};

// The command line, after the environment has been laid under it.
struct LaunchRequest {
  enum class Action { kRun, kPrintConfig, kHelp, kVersion };
  Action action = Action::kRun;
  bool all_help = false;  // kHelp: of every option
  Settings settings;
  std::vector<std::string> program;  // and everything after it
  DryRun dry_run;
};

// Usage, options, three examples. At most a screen, unless it is `all` options in their groups.
std::string launch_help(bool all = false);
std::string help_tail();       // what follows the options there
std::string launch_version();  // "fleetrun 0.1.0"

}  // namespace fleet
