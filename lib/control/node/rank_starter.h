// Starts the ranks of a guardian, also in the places of those that have failed.
#pragma once

#include <signal.h>
#include <sys/resource.h>

#include "base/file.h"
#include "node/guarded_rank.h"
#include "node/job_logs.h"
#include "node/spawn.h"

namespace fleet {

// Not thread-safe; for the main thread (spawn_rank()).
class RankStarter {
 public:
  // mask, limit: the ranks' signals and descriptors. Refers to the others.
  RankStarter(const sigset_t& mask, const rlimit& limit, RankDescriptors& descriptors,
              JobLogs& logs)
      : mask_(mask), limit_(limit), descriptors_(descriptors), logs_(logs) {}

  // Starts the process of a rank whose command is given, with its log and the memory of its
  // progress. `service`: our end of its service socket, if it has one. If it cannot be started, the
  // rank has ended, and the result says why.
  wire::RankStarted start(GuardedRank* rank, UniqueFd* service);

 private:
  SpawnResult start_process(GuardedRank* rank);

  const sigset_t mask_;
  const rlimit limit_;
  RankDescriptors& descriptors_;
  JobLogs& logs_;
};

// The rank to start in the place of one that has failed: with its command and its log. ordinal:
// counts the replacements of this rank, from 1.
GuardedRank successor_of(GuardedRank failed, int ordinal);

}  // namespace fleet
