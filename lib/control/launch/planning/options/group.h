// The groups of fleetrun's options, one file of this folder each. One call declares an option with
// everything about it. A new group is one file and its line in options.cc. If an option applies
// only to some ways to start a job, option_rules.cc needs a line too.
#pragma once

#include "base/option_group.h"

namespace fleet {

// The option, set also by Paddle's variable PADDLE_KEY and by `others`.
Option paddle(Option option, std::vector<std::string> others = {});

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
