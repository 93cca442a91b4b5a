// The cluster environment in which fleetrun was started: Slurm or Kubernetes.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/config.h"

namespace fleet {

// Set for launchers that --via has started: the launch method.
inline constexpr char kEnvVia[] = "FLEET_VIA";

struct ClusterEnvironment {
  std::function<std::optional<std::string>(const std::string&)> environment;
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

}  // namespace fleet
