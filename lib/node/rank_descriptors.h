// Where the guardian puts a rank's descriptors while it starts it. A process that is forked copies
// all descriptors of its parent and closes them again, and the guardian has several for each rank:
// of hundreds of ranks that would take longer than the starts themselves. So the child shares them
// at first, and then copies only those below a bound.
#pragma once

#include <span>
#include <vector>

#include "base/file.h"

namespace fleet {

// Not thread-safe.
class RankDescriptors {
 public:
  // Takes the lowest free descriptors; call it before others are opened.
  RankDescriptors();
  // Whether the kernel has what is needed (Linux 5.9), and allows it.
  bool usable() const { return bound_ > 0; }
  // One past the last descriptor that a rank is to have: the places here, and what the launcher was
  // given for its ranks (descriptors that are not close-on-exec).
  int bound() const { return bound_; }
  // The same as `fd` at a place below bound(), close-on-exec. At most four until release().
  int place(int fd);
  void release();

 private:
  std::vector<UniqueFd> places_;
  UniqueFd null_;
  size_t used_ = 0;
  int bound_ = 0;
};

// In a process that was just forked: closes what its parent had opened for itself (close-on-exec),
// but for `kept`.
void close_parents_descriptors(std::span<const int> kept);

}  // namespace fleet
