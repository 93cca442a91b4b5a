// --via=fleetd: a whole job, started from anywhere through the fleetds of its nodes.
#pragma once

#include <string>
#include <vector>

#include "launch/dry_run/via_plan.h"
#include "launch/options.h"
#include "rendezvous/security.h"

namespace fleet {

// Starts the job, shows what it shows, passes signals on, and ends with its exit code; with
// --detach it ends with 0 once the job runs. Throws what the user got wrong.
int start_via_fleetd(LaunchRequest request);
// What that would ask of whom.
ViaPlan plan_via_fleetd(const LaunchRequest& request);

// Shows a job that runs already, on these fleetds, until it ends: its exit code. Signals go to the
// job; it does not end with this process. `restarts`: the job may go on without a node that is
// lost.
int attach_via_fleetd(const std::string& job_id, const std::vector<std::string>& addresses,
                      bool restarts, const Security& security);

}  // namespace fleet
