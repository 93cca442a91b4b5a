// /proc as this process sees it. Its numbers are not pids if it belongs to another pid namespace:
// in a sandbox that made a namespace (unshare -pf) but kept the host's /proc.
#pragma once

#include <sys/types.h>

#include <string>

namespace fleet {

// Numbers of processes in /proc, and their pids here. Thread-safe.
class ProcView {
 public:
  // For a namespace at this level below that of /proc; 0: the same one. Negative: /proc is missing,
  // or does not show this process.
  explicit ProcView(int level) : level_(level) {}
  static const ProcView& own();

  bool usable() const { return level_ >= 0; }
  // Both return -1 if they find none. A number of another namespace may have a pid here by chance:
  // ask only for descendants of this process, or of one that number_of() found.
  pid_t pid_of(pid_t number) const;
  pid_t number_of(pid_t pid) const;
  // Like pid_of(), from the text of /proc/NUMBER/status.
  pid_t pid_in(const std::string& status) const;

 private:
  pid_t search(pid_t pid) const;
  const int level_;
};

// "/proc/4711". A path that does not exist if /proc does not show the process.
std::string proc_folder(pid_t pid);

}  // namespace fleet
