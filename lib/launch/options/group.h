// The groups of fleetrun's options: one file of this folder each, an option one call with
// everything about it. A new group is one file and its line in options.cc; where an option counts
// only in some ways to start, also a line in option_rules.cc.
#pragma once

#include "base/option_group.h"

namespace fleet {

OptionGroup start_options();      // which nodes, devices and ranks
OptionGroup via_options();        // starting it on all nodes from one place
OptionGroup role_options();       // the parameter-server mode
OptionGroup supervise_options();  // how the job is watched, stopped and restarted
OptionGroup log_options();
OptionGroup screen_options();  // what the launcher itself says
OptionGroup check_options();   // before it starts
OptionGroup security_options();
OptionGroup torch_options();  // what torchrun has and Paddle has not
OptionGroup look_options();   // starting nothing: --help, --dry_run

}  // namespace fleet
