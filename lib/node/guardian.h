// The guardian: a small process beside the launcher that starts the ranks, keeps their logs and
// makes sure that nothing outlives the job.
//
// A parent-death signal reaches only direct children, so the launcher and its guardian are both
// subreapers and watch each other (the end of their socket says at once that the other died): when
// the guardian dies, its ranks get SIGKILL and their orphans come to the launcher; when the
// launcher dies, the guardian is still the ancestor of everything. Whichever survives kills every
// descendant, also those that daemonised.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include "base/file.h"

namespace fleet {

// The launcher's end of it.
struct GuardianProcess {
  pid_t pid = -1;
  UniqueFd socket;  // for a Channel
  UniqueFd alive;   // to be held open as long as the launcher lives (Watcher)
};

// Forks the guardian. To be called before the process has threads, gRPC or a loop, with every
// signal blocked (block_all_signals): the guardian is a copy of this process and stays in its main
// thread. `original` is the signal mask that ranks get. Makes the caller a subreaper.
GuardianProcess start_guardian(const sigset_t& original);

// Blocks every signal that can be; returns the mask as it was.
sigset_t block_all_signals();

}  // namespace fleet
