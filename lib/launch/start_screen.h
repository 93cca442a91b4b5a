// What the launcher says of a start, on standard error: standard output belongs to the program.
#pragma once

#include <string>

#include "launch/plan.h"
#include "rendezvous/types.h"

namespace fleet {

// set_up_logging() for a launcher: --log_level, with --quiet at least WARNING.
void set_up_launch_logging(const Settings& settings);

// The configuration block: what differs from its default, all of it with --log_level=DEBUG. Nothing
// with --quiet. `mode`: the line below it, "" for none.
void print_configuration(const LaunchRequest& request, const std::string& mode = {});

// The table of the first rank's environment; the first time that this launcher starts ranks, one
// line afterwards.
void print_start(const LaunchPlan& plan, const Assignment& assignment, bool again);

}  // namespace fleet
