#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "comm/shared_memory.h"

namespace fleet {

ProcessExitWatcher::ProcessExitWatcher(const std::vector<int>& pids,
                                       std::function<void(const std::vector<int>&)> died)
    : died_(std::move(died)), stop_(::eventfd(0, EFD_CLOEXEC)) {
  if (!stop_) throw_errno("cannot create an eventfd");
  for (size_t i = 0; i < pids.size(); ++i) {
    if (pids[i] <= 0 || pids[i] == ::getpid()) continue;
    // Pidfds are close-on-exec.
    UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pids[i], 0)));
    if (pidfd) {
      peers_.push_back({static_cast<int>(i), std::move(pidfd)});
    } else if (errno == ESRCH) {
      gone_.push_back(static_cast<int>(i));
    } else {
      throw_errno("cannot watch process " + std::to_string(pids[i]));
    }
  }
  if (!peers_.empty() || !gone_.empty()) {
    thread_ = Thread("peer-watch", [this] { run(); });
  }
}

ProcessExitWatcher::~ProcessExitWatcher() {
  const uint64_t one = 1;
  while (::write(stop_.get(), &one, sizeof one) < 0 && errno == EINTR) {
  }
}

void ProcessExitWatcher::run() {
  if (!gone_.empty()) died_(gone_);
  std::vector<pollfd> polled = {{stop_.get(), POLLIN, 0}};
  for (const Peer& peer : peers_) polled.push_back({peer.pidfd.get(), POLLIN, 0});
  for (;;) {
    if (::poll(polled.data(), polled.size(), -1) < 0) continue;  // EINTR
    if (polled[0].revents) return;
    std::vector<int> ended;
    for (size_t i = 0; i < peers_.size(); ++i) {
      if (!polled[i + 1].revents) continue;
      ended.push_back(peers_[i].position);
      polled[i + 1].fd = -1;  // report it only once
    }
    if (!ended.empty()) died_(ended);
  }
}

}  // namespace fleet
