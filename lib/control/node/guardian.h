// The guardian: a small process alongside the launcher that starts the ranks, keeps their logs and
// ensures that no process outlives the job.
//
// A parent-death signal reaches only direct children. The launcher and its guardian are therefore
// both subreapers and monitor each other (the end of their socket reports a death at once). If the
// guardian dies, its ranks get SIGKILL and their orphans become the launcher's children. If the
// launcher dies, the guardian is still the ancestor of all of them. The survivor kills every
// descendant, including daemons.
#pragma once

#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "base/file.h"

namespace fleet {

// The launcher's handle of the guardian.
struct GuardianProcess {
  pid_t pid = -1;
  UniqueFd socket;  // for a Channel
  UniqueFd alive;   // keep open as long as the launcher lives (OrphanWatchdog)
};

// Forks the guardian. Call it before the process has threads, gRPC or a loop, with every signal
// blocked (block_all_signals): the guardian is a copy of this process and stays in its main thread.
// `original` is the ranks' signal mask. Makes the caller a subreaper.
GuardianProcess start_guardian(const sigset_t& original);

// Blocks every signal that can be blocked; returns the previous mask.
sigset_t block_all_signals();

// The main loop of the guardian process.
//
// Serves the launcher at the other end of `socket` until the launcher is gone and no process of the
// ranks is left. `alive`: for an OrphanWatchdog. `original` is the ranks' signal mask,
// `descriptors` their descriptor limit. Call it with every signal blocked; it handles SIGCHLD.
void run_guardian_loop(UniqueFd socket, UniqueFd alive, const sigset_t& original,
                       const rlimit& descriptors);

}  // namespace fleet
