// Notices the end of other processes of this host.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/thread.h"

namespace fleet {

// A thread that sleeps until one of the processes ends (pidfd), then calls `died` with the
// positions of the ended ones in `pids`. Ignores the position of this process and pids <= 0. The
// destructor stops the thread; `died` is not called after it. Where the kernel has no pidfds, or a
// container's filter refuses them, it looks at the processes every 100 ms instead.
class ProcessExitWatcher {
 public:
  // `open_pidfd`: pidfd_open(2), or -1 and errno; tests replace it.
  ProcessExitWatcher(const std::vector<int>& pids,
                     std::function<void(const std::vector<int>&)> died,
                     int (*open_pidfd)(int pid) = nullptr);
  ~ProcessExitWatcher();

 private:
  struct Peer {
    int position;
    int pid;
    UniqueFd pidfd;       // none: its state is read
    std::string started;  // when: tells the process from a later one with its pid
    bool ended = false;
  };
  void run();
  static bool has_ended(const Peer& peer);
  std::vector<Peer> peers_;
  std::vector<int> gone_;  // already dead when the watch began
  std::function<void(const std::vector<int>&)> died_;
  UniqueFd stop_;
  Thread thread_;
};

}  // namespace fleet
