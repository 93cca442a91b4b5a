// In which order processes have ended: waitpid() gives those that have ended by then in the order
// in which they were started, so that one that died of another's death could come first.
#pragma once

#include <sys/types.h>

#include <map>
#include <vector>

#include "base/file.h"

namespace fleet {

// Not thread safe.
class ExitOrder {
 public:
  ExitOrder();
  // A child that has not been waited for. Where the kernel has no pidfd it is never told of.
  void watch(pid_t pid);
  // Those that have ended since the last call, first ends first. They can be waited for.
  std::vector<pid_t> take();

 private:
  UniqueFd epoll_;  // its list of what is ready has the order in which that became so
  std::map<pid_t, UniqueFd> watched_;
};

}  // namespace fleet
