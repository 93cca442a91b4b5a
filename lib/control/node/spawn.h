// Starts a rank's process.
#pragma once

#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "transport/control_messages.h"

namespace fleet {

// Fixed places for a rank's descriptors during its start. A forked process copies all descriptors
// of its parent and closes them again. The guardian has several per rank, so with hundreds of ranks
// this would take longer than the starts themselves. The child therefore shares them at first and
// copies only those below a bound. Not thread-safe.
class RankDescriptors {
 public:
  // Takes the lowest free descriptors; construct it before opening others.
  RankDescriptors();
  // Whether the kernel supports (Linux 5.9) and permits what it needs.
  bool usable() const { return bound_ > 0; }
  // One past a rank's last descriptor: the places here, and the descriptors that the launcher
  // received for its ranks (those that are not close-on-exec).
  int bound() const { return bound_; }
  // Duplicates `fd` to a place below bound(), close-on-exec. At most four until release().
  int duplicate(int fd);
  void release();

 private:
  std::vector<UniqueFd> places_;
  UniqueFd null_;
  size_t used_ = 0;
  int bound_ = 0;
};

// The open descriptors of this process above the standard ones; none if /proc cannot be read.
std::vector<int> open_descriptors();

// In a process just forked: closes the descriptors that its parent had opened for itself
// (close-on-exec), except `kept`.
void close_parents_descriptors(std::span<const int> kept);

// Reading ends of a rank's pipes, non-blocking.
struct RankOutput {
  UniqueFd output;  // its standard output, and its standard error unless that is separate
  UniqueFd error;   // its standard error, if it must be kept apart
};

struct SpawnResult {
  pid_t pid = -1;  // -1: it could not be started
  RankOutput output;
  UniqueFd service;   // our end of its service socket, if it has one
  std::string error;  // the reason of a failure, and what to do
};

// Starts `rank` in its own process group with SIGKILL as its parent-death signal, standard input
// from /dev/null, the given cores, `mask` as its signal mask and `limit` (nullptr: the caller's) as
// its descriptor limit. Signals that the caller handles are reset; ignored ones stay ignored
// (nohup). The parent-death signal is tied to the calling *thread*: call it from the main thread
// only. Throws if descriptors have run out. `low_descriptors`: for a caller that starts many.
SpawnResult spawn_rank(const wire::RankCommand& rank, const sigset_t& mask,
                       const rlimit* limit = nullptr, RankDescriptors* low_descriptors = nullptr);

}  // namespace fleet
