// A third process, beside the launcher and the guardian: when both were killed at the same moment,
// it ends what the job has left. The kernel has ended the ranks by then (PR_SET_PDEATHSIG), but not
// what they started.
//
// It is no ancestor of the ranks: that would take another fork before they can start. It finds them
// by a variable in their environment, with all that is below them, and by the job's cgroup where
// there is one.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/file.h"

namespace fleet {

// Not thread-safe.
class Watcher {
 public:
  // alive: the reading end of a pipe, whose other end the launcher and the guardian hold open.
  // mark: how an entry of the environment ("NAME=VALUE") of each rank begins, and of no other job.
  Watcher(UniqueFd alive, std::string mark) : alive_(std::move(alive)), mark_(std::move(mark)) {}
  ~Watcher() { end(); }
  Watcher(const Watcher&) = delete;

  // Forks it, once. From a process with one thread.
  void start();
  pid_t pid() const { return pid_; }  // -1: there is none
  // A child was waited for.
  void on_child_ended(pid_t pid);
  // It is not needed any more: kills it and waits for it.
  void end();

 private:
  UniqueFd alive_;
  std::string mark_;
  pid_t pid_ = -1;
};

}  // namespace fleet
