// The launcher's options: names, environment variables, defaults and help.
#pragma once

#include <string>
#include <vector>

#include "base/config.h"
#include "base/option_group.h"

namespace fleet {

// Rendezvous port of a job on several nodes, unless --rdzv_port or --master gives one. A job on a
// single node takes a free port.
inline constexpr int kDefaultRendezvousPort = 6768;
// First endpoint port of each node of a multi-node job, unless --start_port gives one (Paddle's
// default). A job on a single node takes free ports.
inline constexpr int kDefaultStartPort = 6070;

// Declared in options/*.cc.
const OptionGroup& launch_option_group();
const std::vector<Option>& launch_options();  // its options
// Options that start nothing: --help, --dry_run and its companions. They are not part of the
// configuration.
const OptionGroup& inspect_options();

// Keys, types, ranges, defaults and help lines of launch_options(), in the same order.
const Schema& launch_schema();

// Whether the key was given on the command line. Values from the environment may be meant for other
// jobs as well.
bool given_by_flag(const Settings& settings, const std::string& key);

// For --print_config: every value and its origin; "none" if a value is not given.
std::string print_options(const Settings& settings);

// Usage, options and examples. At most one screen, unless `all` lists every option by group.
std::string launch_help(bool all = false);
std::string help_tail();       // the text after the options
std::string launch_version();  // "fleetrun 0.2.0"

// --- for options/*.cc ---

// The option, set also by Paddle's variable PADDLE_KEY and by `others`.
Option paddle(Option option, std::vector<std::string> others = {});

// The groups of options, one file of options/ each. One call declares an option with everything
// about it. A new group is one file and its line in options.cc. If an option applies only to some
// ways to start a job, option_rules.cc needs a line too.
OptionGroup start_options();      // which nodes, devices and ranks
OptionGroup via_options();        // starting all nodes from one place
OptionGroup role_options();       // parameter servers
OptionGroup supervise_options();  // supervision, stop and restart
OptionGroup log_options();
OptionGroup message_options();  // output of the launcher itself
OptionGroup check_options();    // checks before the start
OptionGroup security_options();
OptionGroup torch_options();         // torchrun's options that Paddle lacks
OptionGroup inspect_option_group();  // options that start nothing: --help, --dry_run

}  // namespace fleet
