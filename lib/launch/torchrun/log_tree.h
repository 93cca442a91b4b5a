// The folders of torchrun's logs: FOLDER/attempt_K/N.
#pragma once

#include "launch/plan.h"

namespace fleet {

// Makes them for this node's ranks, where the plan has them. A folder for temporary files is made
// for this user alone. kUsage where they cannot be made.
void make_log_tree(const LaunchPlan& plan, const Assignment& assignment);

// After a success: removes the tree where it is temporary and nobody asked for what is in it.
void remove_temporary_logs(const LaunchPlan& plan);

}  // namespace fleet
