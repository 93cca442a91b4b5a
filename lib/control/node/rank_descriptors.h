// Fixed places for a rank's descriptors during its start. A forked process copies all descriptors
// of its parent and closes them again. The guardian has several per rank, so with hundreds of ranks
// this would take longer than the starts themselves. The child therefore shares them at first and
// copies only those below a bound.
#pragma once

#include <span>
#include <vector>

#include "base/file.h"

namespace fleet {

// Not thread-safe.
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

// In a process just forked: closes the descriptors that its parent had opened for itself
// (close-on-exec), except `kept`.
void close_parents_descriptors(std::span<const int> kept);

}  // namespace fleet
