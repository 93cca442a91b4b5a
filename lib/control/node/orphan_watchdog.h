// A third process alongside the launcher and the guardian: if both are killed at the same moment,
// it ends the remaining processes of the job. By then the kernel has ended the ranks
// (PR_SET_PDEATHSIG), but not their children.
//
// It is not an ancestor of the ranks, which would take another fork before they can start. It finds
// them by an environment variable, with all their descendants, and by the job's cgroup if it has
// one.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/file.h"

namespace fleet {

// Not thread-safe.
class OrphanWatchdog {
 public:
  // alive: the reading end of a pipe whose other end the launcher and the guardian hold open. mark:
  // a prefix of an environment entry ("NAME=VALUE") of each rank and of no other job.
  OrphanWatchdog(UniqueFd alive, std::string mark)
      : alive_(std::move(alive)), mark_(std::move(mark)) {}
  ~OrphanWatchdog() { end(); }
  OrphanWatchdog(const OrphanWatchdog&) = delete;

  // Forks it, once. Call it from a single-threaded process.
  void start();
  pid_t pid() const { return pid_; }  // -1: there is none
  // A child was reaped.
  void on_child_ended(pid_t pid);
  // Call it when the watchdog is no longer needed: kills it and waits for it.
  void end();

 private:
  UniqueFd alive_;
  std::string mark_;
  pid_t pid_ = -1;
};

}  // namespace fleet
