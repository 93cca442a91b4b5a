// What the guardian process does, once there is one.
#pragma once

#include <signal.h>
#include <sys/resource.h>

#include "base/file.h"

namespace fleet {

// Serves the launcher at the other end of `socket` until that is gone and nothing of the ranks is
// left. `alive`: for a Watcher. Ranks get `original` as their signal mask and `descriptors` as
// their limit of them. With every signal blocked; hears of SIGCHLD.
void run_guardian_loop(UniqueFd socket, UniqueFd alive, const sigset_t& original,
                       const rlimit& descriptors);

}  // namespace fleet
