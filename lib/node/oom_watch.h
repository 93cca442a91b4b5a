// Whether the kernel has killed processes of this job for lack of memory.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "base/file.h"

namespace fleet {

// Counts from the moment it is made. Not thread safe.
class OomWatch {
 public:
  // Of the cgroup (version 2 or 1) that this process is in, and of the kernel's log where it may be
  // read.
  OomWatch();
  // For tests: these files, "" where there is none.
  OomWatch(std::string counter, const std::string& kernel_log);

  // Whether one of the kernel's sources can be read at all.
  bool sees() const { return before_.has_value() || static_cast<bool>(log_); }
  // Processes of this cgroup that were killed since.
  long long killed() const;
  // The kernel's own line about this process; "" where it has none that can be seen.
  std::string line_about(pid_t pid);

 private:
  std::string counter_;
  std::optional<long long> before_;
  UniqueFd log_;
  std::string lines_;  // of the kernel's log, about kills
};

// What is to be said about a rank that ended (by `signal`, 0: by itself), or "". Sets *oom where
// the kernel has killed it for lack of memory.
std::string explain_end(OomWatch& watch, pid_t pid, int signal, bool* oom);

}  // namespace fleet
