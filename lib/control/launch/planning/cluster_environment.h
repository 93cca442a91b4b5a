// The cluster environment in which fleetrun was started: Slurm or Kubernetes.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/config.h"

namespace fleet {

// Looks a variable up.
using EnvironmentLookup = std::function<std::optional<std::string>(const std::string&)>;

// Set for launchers that --via has started: the launch method.
inline constexpr char kEnvVia[] = "FLEET_VIA";

struct ClusterEnvironment {
  EnvironmentLookup environment;
  std::function<std::string()> host_name;       // "train-3"
  std::function<std::string()> canonical_name;  // of this host: "train-3.train.svc.cluster.local"
};
ClusterEnvironment real_cluster_environment();

// Adds settings to `tree` that the user has not given:
// - For `srun fleetrun ...`, one per node: nodes, this node's rank, ports and the job id from
//   SLURM_*, and a log folder for each node. Only if none of --ips, --master, --nnodes, --host,
//   --rank, --servers and --workers is given. With --via=slurm only the first node shows the job.
// - For a pod of a Kubernetes indexed Job with several --nnodes: --rank from JOB_COMPLETION_INDEX,
//   --master from the names that a headless service gives to pods.
// Throws kUsage if srun has started several on one node.
void add_cluster_settings(const ClusterEnvironment& cluster, ConfigTree* tree);

bool has_slurm_allocation(const EnvironmentLookup& environment);
// A step that the user started; not a batch script or salloc's shell.
bool in_slurm_step(const EnvironmentLookup& environment);
// Whether this process is in a Slurm allocation, and not in a step that cannot start others.
bool in_slurm_allocation(const EnvironmentLookup& environment);

}  // namespace fleet
