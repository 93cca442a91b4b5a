// Another process, whose number a later process may get.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/file.h"

namespace fleet {

// By a pidfd, or without support for that (before Linux 5.3, or forbidden in a container) by its
// pid and start time, which leaves a moment between look and signal. Not thread-safe.
class ProcessHandle {
 public:
  // start_ticks: process_start_ticks() of the process; "": the one that has the pid now.
  explicit ProcessHandle(pid_t pid, std::string start_ticks = {});

  pid_t pid() const { return pid_; }
  bool runs() const;
  // Returns false if it has ended.
  bool signal(int number) const;
  void wait() const;  // for its end
  // The caller's own descriptor, which becomes readable at its end; empty without support: poll
  // runs().
  UniqueFd end_descriptor() const;

 private:
  bool is_same() const;

  const pid_t pid_;
  std::string start_;
  UniqueFd pidfd_;
  bool gone_ = false;
};

}  // namespace fleet
