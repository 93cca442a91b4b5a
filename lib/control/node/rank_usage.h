// What the ranks of this node use, from /proc and their cgroups: CPU time, memory, and the time in
// which they had no core. A look costs microseconds a process.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

#include "rendezvous/types.h"

namespace fleet {

// A cgroup's CPU quota.
struct CpuQuota {
  double cores = 0;          // 0: none
  int64_t throttled_ns = 0;  // time in which it stopped threads, over all cores
};
// The tightest quota of the cgroup of `pid` and of those above it; versions 1 and 2. `root`: the
// prefix of /proc and /sys.
CpuQuota cpu_quota(pid_t pid, const std::string& root = {});

// Not thread-safe.
class RankUsageSampler {
 public:
  using Time = std::chrono::steady_clock::time_point;

  struct Target {
    int local_rank = 0;
    pid_t pid = -1;
  };
  void watch(const std::vector<Target>& targets);
  // One for each rank that lives: everything but rank, server and gpus. Processes that a rank has
  // started in the last seconds are missing: all of /proc is read at most every 5 s, and for at
  // most 1/200 of the time.
  std::vector<RankUsage> sample(Time now);

 private:
  struct Process {
    pid_t pid;
    std::string stat;  // path of its file
  };
  struct Rank {
    Target target;
    std::vector<Process> tree;  // itself first
    CpuQuota quota;
    double cores = 0;
  };
  void find_processes(Time now);
  static bool add(const Rank& rank, RankUsage* usage);

  std::vector<Rank> ranks_;
  Time next_search_{};
};

}  // namespace fleet
