// The launcher's output at a start, on standard error: standard output belongs to the program.
#pragma once

#include <string>

#include "launch/planning/launch_plan.h"
#include "rendezvous/types.h"

namespace fleet {

// Prints the configuration block: values that differ from their defaults, or all values with
// --log_level=DEBUG. Prints nothing with --quiet. `mode` is the line below it; "" for none.
void print_configuration(const LaunchRequest& request, const std::string& mode = {});

// Prints the table of the first rank's environment at the first start, and one line at each
// restart.
void print_start(const LaunchPlan& plan, const Assignment& assignment, bool again);

}  // namespace fleet
