// The cores of this machine, and their division among its ranks.
#pragma once

#include <string>
#include <vector>

#include "launch/planning/devices.h"
#include "rendezvous/types.h"

namespace fleet {

// Limits of this process's cgroup: `docker --cpus`, `--memory`, a pod's limits.
struct CgroupLimits {
  double cpus = 0;       // cores' worth of time; 0: no limit
  long long memory = 0;  // bytes; 0: no limit
};
// The tightest limits of this process's cgroup and its parents; versions 1 and 2. `root` is the
// prefix of /proc and /sys.
CgroupLimits cgroup_limits(const std::string& root = {});

// A rank's share of the node's cores.
struct CorePlan {
  int threads = 0;         // OMP_NUM_THREADS; 0: keep the user's value
  std::vector<int> cores;  // cores to pin the rank to; empty: not pinned
};
// Divides `available` among `ranks` ranks: max(1, cores / ranks) threads each, pinned to as many
// cores if there are enough. Does nothing if the user set OMP_NUM_THREADS. `first` and `on_host`
// are for nodes that share this host: this node's first rank among `on_host` ranks. `quota` is the
// cgroup's limit in cores' worth of time, 0 if none. If it is less than the cores, it determines
// the threads, and no rank is pinned.
std::vector<CorePlan> plan_cores(const std::vector<int>& available, int first, int ranks,
                                 int on_host, bool user_decides, double quota = 0);

// The system's NUMA topology, below `root` ("" except in tests).
struct NumaSystem {
  std::string root;
  std::vector<int> allowed;  // the cores that this process may use
  // PCI addresses ("0000:3b:00.0") of the GPUs in bus order, which is CUDA's order for GPUs of one
  // model.
  std::vector<std::string> gpus;
};
NumaSystem numa_system(std::vector<int> allowed, const std::string& root = "");
// The machine's NUMA nodes; 1 if the kernel does not tell.
int numa_nodes(const std::string& root = "");
// The cores for the rank that uses `gpu` (an index into gpus), ascending. Throws kUsage if the GPU
// does not exist or has no usable core.
std::vector<int> cores_near_gpu(const NumaSystem& system, NumaBinding binding, int gpu);

// Throws kUsage if --numa_binding is impossible here.
void check_numa_binding(const LaunchConfig& config, const LocalRanks& ranks);
// The shares of this node's ranks. Throws kUsage if --numa_binding is impossible.
std::vector<CorePlan> cores_of_ranks(const LaunchConfig& config, const LocalRanks& ranks,
                                     const Assignment& assignment);

}  // namespace fleet
