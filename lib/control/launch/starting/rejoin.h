// Restart of a node 0 that was lost.
#pragma once

#include "launch/planning/launch_plan.h"

namespace fleet {

// If this node would host the rendezvous of a job with restarts, but another node of --ips already
// hosts that job, changes the plan so that this node joins it there. Queries the other nodes for at
// most one second. May start threads (gRPC).
void rejoin_running_job(LaunchPlan* plan);

}  // namespace fleet
