// Notices the death of processes of this host.
#pragma once

#include <functional>
#include <vector>

#include "base/file.h"
#include "base/thread.h"

namespace fleet {

// A thread that sleeps until one of the processes ends (pidfd), and then calls `died` with the
// positions in `pids` of those that did. Positions of the own process and pids <= 0 are passed
// over. The destructor ends the thread; `died` is not called after it.
class PeerWatch {
 public:
  PeerWatch(const std::vector<int>& pids, std::function<void(const std::vector<int>&)> died);
  ~PeerWatch();

 private:
  void run();
  struct Peer {
    int position;
    UniqueFd pidfd;
  };
  std::vector<Peer> peers_;
  std::vector<int> gone_;  // before the watch began
  std::function<void(const std::vector<int>&)> died_;
  UniqueFd stop_;
  Thread thread_;
};

}  // namespace fleet
