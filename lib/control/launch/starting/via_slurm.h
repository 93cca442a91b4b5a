// --via=slurm: runs the job with one srun on the nodes of the current Slurm allocation.
#pragma once

#include <string>
#include <vector>

#include "launch/planning/arguments.h"
#include "launch/planning/cluster_environment.h"
#include "launch/planning/via_plan.h"

namespace fleet {

// The command that starts the job: `srun` with one task per node. Each task is a fleetrun with the
// user's options only; it takes nodes, rank and ports from its step. `self`: this program's path.
// Throws kUsage outside an allocation, inside a step, and for options that Slurm decides.
std::vector<std::string> srun_command(const LaunchRequest& request,
                                      const EnvironmentLookup& environment,
                                      const std::string& self);

// A plan for --dry_run, with the nodes of the allocation.
ViaPlan plan_via_slurm(const LaunchRequest& request);
ViaPlan plan_via_slurm(const LaunchRequest& request, const EnvironmentLookup& environment,
                       const std::string& self);

// Runs that srun, forwards signals and returns its exit code. The job ends with this process, even
// if it is killed. Call it from a process without threads.
int start_via_slurm(const LaunchRequest& request);

}  // namespace fleet
