// --via=slurm: the job in the nodes of the Slurm allocation that this process is in, by one srun.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "launch/dry_run/via_plan.h"
#include "launch/options.h"

namespace fleet {

// Whether this process is in an allocation of Slurm, and in no step of it that could not make more.
bool in_slurm_allocation(
    const std::function<std::optional<std::string>(const std::string&)>& environment);

// The command that starts the job: `srun`, one task a node, each a fleetrun with what the user gave
// and nothing else, which takes nodes, place and ports from its step. `self`: this program's path.
// kUsage outside of an allocation, inside of a step, and for what Slurm decides.
std::vector<std::string> srun_command(
    const LaunchRequest& request,
    const std::function<std::optional<std::string>(const std::string&)>& environment,
    const std::string& self);

// The same as a plan, with the nodes of the allocation.
ViaPlan plan_via_slurm(const LaunchRequest& request);
ViaPlan plan_via_slurm(
    const LaunchRequest& request,
    const std::function<std::optional<std::string>(const std::string&)>& environment,
    const std::string& self);

// Runs that srun, passes signals on, and returns its exit code. The job ends with this process,
// also where that is killed. From a process without threads.
int start_via_slurm(LaunchRequest request);

}  // namespace fleet
