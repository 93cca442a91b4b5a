// Ranks that a signal has stopped, and Ctrl-Z.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace fleet {

// Whether the kernel sends it to a process that uses a terminal from the background.
bool is_terminal_stop(int signal);
// "rank 3 is stopped (SIGTTIN): it reads from the terminal ...", and the remedy.
std::string terminal_stop_text(const std::string& rank, int signal);

// Stops (SIGSTOP) or continues (SIGCONT) these process groups and all descendants of this process
// but those in `except`.
void signal_all(const std::vector<pid_t>& groups, const std::vector<pid_t>& except, int signal);

// Stops this process as a terminal's Ctrl-Z does, until it is continued. Returns at once if the
// kernel does not stop it, because no shell could continue it. Call it from the main thread.
void suspend_self();

}  // namespace fleet
