// Checks a guardian's ranks for hangs, from outside and from their own progress.
#pragma once

#include <chrono>
#include <vector>

#include "node/guarded_rank.h"
#include "node/progress_collector.h"
#include "transport/control_messages.h"

namespace fleet {

// Not thread-safe.
class HangChecks {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // The ranks start (again). timeout: how long a rank may make no progress; 0: none is watched.
  // usual: the interval between checks while no rank is watched.
  void begin(std::chrono::milliseconds timeout, std::chrono::milliseconds usual);
  // Watches a rank that has started, if its command expects progress.
  void watch(GuardedRank* rank);
  // Time between two checks: a check that comes later than twice this does not count in full.
  std::chrono::milliseconds interval() const { return interval_; }
  // The running ranks that hang since the last check, each once.
  std::vector<RankStall> check(std::vector<GuardedRank>& ranks, const ProgressCollector& progress,
                               Time now) const;

 private:
  std::chrono::milliseconds timeout_{0}, interval_{0};
};

}  // namespace fleet
