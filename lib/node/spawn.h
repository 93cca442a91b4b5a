// Starts a rank's process.
#pragma once

#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <string>

#include "base/file.h"
#include "node/rank_descriptors.h"
#include "node/wire.h"

namespace fleet {

// Reading ends of a rank's pipes, non-blocking.
struct RankOutput {
  UniqueFd output;  // its standard output, and its standard error where that has none of its own
  UniqueFd error;   // its standard error, where RankCommand::two_streams()
};

struct Spawned {
  pid_t pid = -1;  // -1: it could not be started
  RankOutput output;
  UniqueFd service;   // our end of its service socket, where it has one
  std::string error;  // why not, and what to do
};

// Starts `rank` in a process group of its own with SIGKILL as its parent-death signal, standard
// input from /dev/null, the given cores, `mask` as its signal mask and `limit` (nullptr: the
// caller's) as its limit of descriptors. What the caller catches is reset, what it ignores stays
// ignored (nohup). The parent-death signal is tied to the calling *thread*: call it from the main
// thread only. Throws where descriptors have run out. `places`: for a caller that starts many.
Spawned spawn_rank(const RankCommand& rank, const sigset_t& mask, const rlimit* limit = nullptr,
                   RankDescriptors* places = nullptr);

}  // namespace fleet
