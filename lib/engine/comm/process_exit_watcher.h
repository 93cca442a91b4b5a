// Detects the death of processes on this host.
#pragma once

#include <functional>
#include <vector>

#include "base/file.h"
#include "base/thread.h"

namespace fleet {

// A thread that sleeps until one of the processes ends (pidfd), then calls `died` with the
// positions of the ended ones in `pids`. Ignores the position of this process and pids <= 0. The
// destructor stops the thread; `died` is not called after it.
class ProcessExitWatcher {
 public:
  ProcessExitWatcher(const std::vector<int>& pids,
                     std::function<void(const std::vector<int>&)> died);
  ~ProcessExitWatcher();

 private:
  void run();
  struct Peer {
    int position;
    UniqueFd pidfd;
  };
  std::vector<Peer> peers_;
  std::vector<int> gone_;  // already dead when the watch began
  std::function<void(const std::vector<int>&)> died_;
  UniqueFd stop_;
  Thread thread_;
};

}  // namespace fleet
