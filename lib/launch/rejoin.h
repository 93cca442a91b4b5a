// Node 0 that was lost and is started again.
#pragma once

#include "launch/plan.h"

namespace fleet {

// Where this node would host the rendezvous of a job with restarts, and the job runs already with
// another node of --ips as its host: changes the plan such that this node joins it there. Asks the
// others, for a second at most. Threads may start (gRPC).
void rejoin_where_it_runs(LaunchPlan* plan);

}  // namespace fleet
