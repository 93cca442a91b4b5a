// The order in which processes ended. waitpid() returns ended children in the order of their start,
// so a consequence of another process's death could appear first.
#pragma once

#include <sys/types.h>

#include <map>
#include <vector>

#include "base/file.h"

namespace fleet {

// Not thread-safe.
class ExitOrder {
 public:
  ExitOrder();
  // Watches a child that has not been waited for. Without pidfd support, take() never returns it.
  void watch(pid_t pid);
  // Returns the children that ended since the last call, in the order of their ends. They can be
  // waited for.
  std::vector<pid_t> take();

 private:
  UniqueFd epoll_;  // its ready list keeps the order of events
  std::map<pid_t, UniqueFd> watched_;
};

}  // namespace fleet
