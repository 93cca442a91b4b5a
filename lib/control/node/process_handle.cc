#include "node/process_handle.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "node/process_tree.h"

namespace fleet {
namespace {

constexpr int kPollMs = 50;

bool exists(pid_t pid) { return ::kill(pid, 0) == 0 || errno == EPERM; }

}  // namespace

ProcessHandle::ProcessHandle(pid_t pid, std::string start_ticks)
    : pid_(pid),
      start_(std::move(start_ticks)),
      pidfd_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))) {
  if (pid <= 0 || !exists(pid)) {
    gone_ = true;
  } else if (start_.empty()) {
    start_ = process_start_ticks(pid);
  } else {
    gone_ = !is_same();
  }
}

// A zombie has ended, even if its parent has not waited for it.
bool ProcessHandle::is_same() const {
  if (!exists(pid_)) return false;
  if (start_.empty()) return true;  // without /proc, nothing more is known
  const auto stat = process_stat(pid_);
  return stat && stat->state != 'Z' && std::to_string(stat->start) == start_;
}

bool ProcessHandle::runs() const {
  if (gone_) return false;
  if (!pidfd_) return is_same();
  pollfd ended = {pidfd_.get(), POLLIN, 0};
  return ::poll(&ended, 1, 0) == 0;
}

bool ProcessHandle::signal(int number) const {
  if (!runs()) return false;
  if (pidfd_ && ::syscall(SYS_pidfd_send_signal, pidfd_.get(), number, nullptr, 0) == 0)
    return true;
  return is_same() && ::kill(pid_, number) == 0;
}

void ProcessHandle::wait() const {
  if (gone_) return;
  pollfd ended = {pidfd_.get(), POLLIN, 0};
  while (runs()) ::poll(&ended, pidfd_ ? 1 : 0, pidfd_ ? -1 : kPollMs);
}

UniqueFd ProcessHandle::end_descriptor() const {
  return UniqueFd(pidfd_ ? ::fcntl(pidfd_.get(), F_DUPFD_CLOEXEC, 0) : -1);
}

}  // namespace fleet
