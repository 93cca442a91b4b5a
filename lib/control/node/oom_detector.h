// Finds out whether the kernel ended a rank because memory ran out.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "base/file.h"

namespace fleet {

// Detects processes of this job that the kernel killed because memory ran out. Counts from its
// construction, or from begin(). Not thread-safe.
class OomDetector {
 public:
  // For the cgroup (version 2 or 1) of this process, and the kernel's log if it is readable.
  OomDetector();
  // For tests: these files; "" if none.
  OomDetector(std::string counter, const std::string& kernel_log);

  // Kills of an earlier generation no longer count.
  void begin();
  // Whether any of the kernel's sources is readable.
  bool is_available() const { return before_.has_value() || static_cast<bool>(log_); }
  // Processes of this cgroup that were killed since then.
  long long killed() const;
  // The kernel's own line about this process; "" if none is visible.
  std::string line_about(pid_t pid);

 private:
  void read_log();

  std::string counter_;
  std::optional<long long> before_;
  UniqueFd log_;
  std::string lines_;  // from the kernel's log, about kills
};

// An explanation of a rank's end (by `signal`, 0: an exit), or "". Sets *oom if the kernel killed
// it because memory ran out.
std::string explain_exit(OomDetector& watch, pid_t pid, int signal, bool* oom);

}  // namespace fleet
