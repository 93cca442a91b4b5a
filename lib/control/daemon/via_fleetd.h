// --via=fleetd: starts a whole job from any host through the fleetds of its nodes.
#pragma once

#include <string>
#include <vector>

#include "launch/planning/arguments.h"
#include "launch/planning/via_plan.h"
#include "rendezvous/security.h"

namespace fleet {

// Starts the job, shows its output, forwards signals, and returns its exit code. With --detach,
// returns 0 once the job runs. Throws user errors.
int start_via_fleetd(const LaunchRequest& request);
// The plan of start_via_fleetd(), for --dry_run.
ViaPlan plan_via_fleetd(const LaunchRequest& request);

// Shows a running job on these fleetds until it ends, and returns its exit code. Forwards signals
// to the job, which does not end with this process. `restarts`: the job may continue without a lost
// node.
int attach_via_fleetd(const std::string& job_id, const std::vector<std::string>& addresses,
                      bool restarts, const Security& security);

}  // namespace fleet
