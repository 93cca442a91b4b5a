// Settings that fleetrun takes from Slurm's environment.
#pragma once

#include <string>
#include <vector>

#include "base/config.h"
#include "launch/planning/cluster_environment.h"

namespace fleet {

// Set for launchers that --via has started: the launch method.
inline constexpr char kEnvVia[] = "FLEET_VIA";

// Adds settings to `tree` that the user has not given:
// - In a step (`srun fleetrun ...`, one per node): its nodes, this node's rank, ports and the job
//   id. --nnodes counts the step's nodes; with --nnodes=1 each task is a separate job. With
//   --via=slurm only the first node shows the job.
// - In a batch script or a shell of salloc: the job id, and --via=slurm for several --nnodes.
// - In both, a log folder for each job and node: log/slurm-JOB.STEP/nodeN.
// If the user names nodes (--ips, --master, --host, --rank, --servers, --workers), only the log
// folder is added; with --via, nothing.
// Returns a warning if the job leaves nodes of its allocation unused. Throws kUsage for a step that
// cannot be one job.
std::vector<std::string> add_slurm_settings(const EnvironmentLookup& environment, ConfigTree* tree);

bool has_slurm_allocation(const EnvironmentLookup& environment);
// A step that the user started; not a batch script or salloc's shell.
bool in_slurm_step(const EnvironmentLookup& environment);
// Whether this process is in a Slurm allocation, and not in a step that cannot start others.
bool in_slurm_allocation(const EnvironmentLookup& environment);

// "slurm-7.0": the id of a job whose id the user does not give, and its folder below log.
// `step`: "0".
std::string slurm_job_name(const std::string& job, const std::string& step);

// Whether the Slurm job has several components, each with an allocation of its own.
bool in_heterogeneous_job(const EnvironmentLookup& environment);

}  // namespace fleet
