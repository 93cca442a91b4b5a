// The log folders of torchrun: FOLDER/attempt_K/N.
#pragma once

#include "launch/planning/launch_plan.h"

namespace fleet {

// Creates them for this node's ranks. A temporary folder is accessible to this user only. Throws
// kUsage if they cannot be created.
void make_log_tree(const LaunchPlan& plan, const Assignment& assignment);

// After a success, removes a temporary tree that no option requested.
void remove_temporary_logs(const LaunchPlan& plan);

}  // namespace fleet
