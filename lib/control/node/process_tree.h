// The descendants of this process, and the order in which children end.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"

namespace fleet {

// Makes this process the parent of every orphan below it (PR_SET_CHILD_SUBREAPER).
void become_subreaper();

// The current children of this process. A launcher that a shell exec'd has inherited some.
std::vector<pid_t> children_of_self();

// All descendants of this process except the subtrees of `except`; empty only without any.
// While processes end, some may be missing: repeat the call until it is empty. Includes zombies,
// because a process whose first thread has ended looks like one while other threads run.
std::vector<pid_t> descendants(const std::vector<pid_t>& except);

// All processes of this user with an environment entry ("NAME=VALUE") that begins with `mark`, and
// all their descendants. Excludes this process and zombies without threads.
std::vector<pid_t> processes_with_environment(const std::string& mark);

// Each of these processes with all its descendants, itself first, in order.
std::vector<std::vector<pid_t>> process_trees(const std::vector<pid_t>& roots);

// CPU time used so far by each of these processes and its descendants, in order.
std::vector<double> cpu_seconds(const std::vector<pid_t>& roots);

// "pid:[4026531836]": containers that share a folder each number their processes from 1. "" if
// unknown.
std::string pid_namespace();

// As in /proc/PID/stat.
struct ProcessStat {
  char state = '?';   // R, S, D, T, Z
  pid_t parent = 0;   // -1: unknown
  int64_t ticks = 0;  // CPU time, with that of ended children
  int nice = 0;
  int64_t start = 0;   // in ticks since boot
  int64_t memory = 0;  // bytes
};
// nullopt if it is gone.
std::optional<ProcessStat> process_stat(pid_t pid);
// Its state; '?' if it is gone.
char process_state(pid_t pid);
// Its start time: distinguishes it from a later process with its pid. "" if it is gone.
std::string process_start_ticks(pid_t pid);
// The kernel function in which it waits; "" if unknown.
std::string wait_channel(pid_t pid);

// Whether this process has descendants, except `except`.
bool has_descendants(const std::vector<pid_t>& except);

// "pid 123 (python3), state D, waiting in nfs_wait": for a process that cannot be killed.
std::string describe_process(pid_t pid);

// The order in which processes ended. waitpid() returns ended children in the order of their start,
// so a consequence of another process's death could appear first. Not thread-safe.
class ExitOrder {
 public:
  ExitOrder();
  // Watches a child that has not been waited for. Without pidfd support, take() never returns it.
  void watch(pid_t pid);
  // Returns the children that ended since the last call, in the order of their ends. They can be
  // waited for.
  std::vector<pid_t> take();

 private:
  UniqueFd epoll_;  // its ready list keeps the order of events
  std::map<pid_t, UniqueFd> watched_;
};

}  // namespace fleet
