#include "node/exit_order.h"

#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace fleet {

ExitOrder::ExitOrder() : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {}

void ExitOrder::watch(pid_t pid) {
  UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!epoll_ || !pidfd) return;
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = static_cast<uint64_t>(pid);
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, pidfd.get(), &event) != 0) return;
  watched_[pid] = std::move(pidfd);
}

std::vector<pid_t> ExitOrder::take() {
  std::vector<pid_t> ended;
  epoll_event events[64];
  while (!watched_.empty()) {
    const int count = ::epoll_wait(epoll_.get(), events, 64, 0);
    if (count <= 0) break;
    for (int i = 0; i < count; ++i) {
      const pid_t pid = static_cast<pid_t>(events[i].data.u64);
      ended.push_back(pid);
      // Closing it is not enough if another process has inherited it.
      ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, watched_[pid].get(), nullptr);
      watched_.erase(pid);
    }
  }
  return ended;
}

}  // namespace fleet
