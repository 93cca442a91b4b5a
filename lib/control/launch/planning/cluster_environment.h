// The cluster environment in which fleetrun was started: Slurm or Kubernetes.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/config.h"

namespace fleet {

// Looks a variable up.
using EnvironmentLookup = std::function<std::optional<std::string>(const std::string&)>;

struct ClusterEnvironment {
  EnvironmentLookup environment;
  std::function<std::string()> host_name;       // "train-3"
  std::function<std::string()> canonical_name;  // "train-3.train.svc.cluster.local"
};
ClusterEnvironment real_cluster_environment();

// Adds settings to `tree` that the user has not given:
// - In Slurm: slurm.h.
// - For a pod of a Kubernetes indexed Job with several --nnodes: --rank from JOB_COMPLETION_INDEX,
//   --master from the names that a headless service gives to pods.
// Returns warnings. Throws kUsage for a start that cannot be one job.
std::vector<std::string> add_cluster_settings(const ClusterEnvironment& cluster, ConfigTree* tree);

}  // namespace fleet
