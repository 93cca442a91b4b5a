// Starts a rank's process.
#pragma once

#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <string>

#include "base/file.h"
#include "node/rank_descriptors.h"
#include "rendezvous/control_messages.h"

namespace fleet {

// Reading ends of a rank's pipes, non-blocking.
struct RankOutput {
  UniqueFd output;  // its standard output, and its standard error unless that is separate
  UniqueFd error;   // its standard error, if it must be kept apart
};

struct SpawnResult {
  pid_t pid = -1;  // -1: it could not be started
  RankOutput output;
  UniqueFd service;   // our end of its service socket, if it has one
  std::string error;  // the reason of a failure, and what to do
};

// Starts `rank` in its own process group with SIGKILL as its parent-death signal, standard input
// from /dev/null, the given cores, `mask` as its signal mask and `limit` (nullptr: the caller's) as
// its descriptor limit. Signals that the caller handles are reset; ignored ones stay ignored
// (nohup). The parent-death signal is tied to the calling *thread*: call it from the main thread
// only. Throws if descriptors have run out. `low_descriptors`: for a caller that starts many.
SpawnResult spawn_rank(const wire::RankCommand& rank, const sigset_t& mask,
                       const rlimit* limit = nullptr, RankDescriptors* low_descriptors = nullptr);

}  // namespace fleet
