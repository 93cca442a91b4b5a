// The main loop of the guardian process.
#pragma once

#include <signal.h>
#include <sys/resource.h>

#include "base/file.h"

namespace fleet {

// Serves the launcher at the other end of `socket` until the launcher is gone and no process of the
// ranks is left. `alive`: for an OrphanWatchdog. `original` is the ranks' signal mask,
// `descriptors` their descriptor limit. Call it with every signal blocked; it handles SIGCHLD.
void run_guardian_loop(UniqueFd socket, UniqueFd alive, const sigset_t& original,
                       const rlimit& descriptors);

}  // namespace fleet
