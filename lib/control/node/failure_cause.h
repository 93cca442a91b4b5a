// Finds out why a rank ended: the reason that the program gives, in its log or in a record of its
// own, and whether the kernel killed it.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

#include "base/file.h"
#include "rendezvous/types.h"

namespace fleet {

// One line: the exception that ended a Python program; the message of an uncaught C++ exception, an
// assertion, a panic or Paddle's error summary; or the last line if it reads like an error. "" if
// the log has none of these or does not explain this end. `log`: as resolve_output() returns it.
// `signal`: the signal that ended the program, or 0.
std::string failure_cause(std::string_view log, int signal);

// A cause for messages: one line without control characters, at most 300 columns.
std::string cause_line(std::string_view text);

// Reads a file as torch.distributed's @record writes it: {"message": {"message": ..., "extraInfo":
// {"py_callstack": ..., "timestamp": ...}}}, or {"message": TEXT}. Empty if `path` is empty or
// names no such file, so that a program's file can never end a job. Reads at most 1 MiB and follows
// no link.
RecordedError read_error_file(const std::string& path);

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
  std::string lines_;  // of the kernel's log, about kills
};

// An explanation of a rank's end (by `signal`, 0: an exit), or "". Sets *oom if the kernel killed
// it because memory ran out.
std::string explain_exit(OomDetector& watch, pid_t pid, int signal, bool* oom);

}  // namespace fleet
