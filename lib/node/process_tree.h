// The processes below this one, and ending them.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace fleet {

// Makes this process the parent of every orphan below it (PR_SET_CHILD_SUBREAPER).
void become_subreaper();

// The children of this process now. A launcher that was exec'd into by a shell has some that are
// not its own.
std::vector<pid_t> children_of_self();

// Every process below this one, but for the subtrees of `except`; empty only if there is none.
// While processes end, some may be left out: ask again until it is empty. Zombies are among them: a
// process whose first thread has ended looks like one while the others run.
std::vector<pid_t> descendants(const std::vector<pid_t>& except);

// Every process of this user with an entry of its environment ("NAME=VALUE") that begins with
// `mark`, and every process below one. Not this one, and no zombies that have ended wholly.
std::vector<pid_t> processes_marked(const std::string& mark);

// CPU time that each of these processes, with all below it, has used so far; by their order.
std::vector<double> cpu_seconds(const std::vector<pid_t>& roots);

// As in /proc/PID/stat: R, S, D, T, Z; '?' where it is gone.
char process_state(pid_t pid);
// When it started, in ticks since boot: tells it from a later one with its number. "" where there
// is none.
std::string process_birth(pid_t pid);
// The kernel function that it waits in; "" where that is not known.
std::string wait_channel(pid_t pid);

// Whether any process is below this one, but for `except`.
bool has_descendants(const std::vector<pid_t>& except);

// "pid 123 (python3), state D, waiting in nfs_wait": for a process that will not die.
std::string describe_process(pid_t pid);

}  // namespace fleet
