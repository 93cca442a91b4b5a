#include "comm/process_exit_watcher.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "base/error.h"
#include "base/small_file.h"
#include "base/text.h"

namespace fleet {
namespace {

constexpr int kLookAgainMs = 100;

// Pidfds are close-on-exec.
int open_pidfd_of(int pid) { return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)); }

bool is_used_up(int error) { return error == EMFILE || error == ENFILE || error == ENOMEM; }

// The state and the start time of /proc/PID/stat; empty if it cannot be read.
struct ProcessStat {
  std::string state, started;
};

ProcessStat stat_of(int pid) {
  const std::string text = small_file("/proc/" + std::to_string(pid) + "/stat");
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos || name_end + 2 > text.size()) return {};
  // The fields from the third on.
  const std::vector<std::string> fields = split(std::string_view(text).substr(name_end + 2), ' ');
  constexpr size_t kState = 0, kStarted = 19;
  return fields.size() > kStarted ? ProcessStat{fields[kState], fields[kStarted]} : ProcessStat();
}

}  // namespace

ProcessExitWatcher::ProcessExitWatcher(const std::vector<int>& pids,
                                       std::function<void(const std::vector<int>&)> died,
                                       int (*open_pidfd)(int pid))
    : died_(std::move(died)), stop_(::eventfd(0, EFD_CLOEXEC)) {
  if (!stop_) throw_errno("cannot create an eventfd");
  if (!open_pidfd) open_pidfd = open_pidfd_of;
  for (size_t i = 0; i < pids.size(); ++i) {
    if (pids[i] <= 0 || pids[i] == ::getpid()) continue;
    UniqueFd pidfd(open_pidfd(pids[i]));
    if (!pidfd && is_used_up(errno)) {
      throw_errno("cannot watch process " + std::to_string(pids[i]));
    }
    if (!pidfd && errno == ESRCH) {
      gone_.push_back(static_cast<int>(i));
      continue;
    }
    std::string started = pidfd ? std::string() : stat_of(pids[i]).started;
    peers_.push_back({static_cast<int>(i), pids[i], std::move(pidfd), std::move(started)});
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

// Without a pidfd. A process that its parent has not reaped yet has ended too.
bool ProcessExitWatcher::has_ended(const Peer& peer) {
  if (::kill(peer.pid, 0) != 0 && errno == ESRCH) return true;
  const ProcessStat now = stat_of(peer.pid);
  if (now.state.empty()) return false;
  const bool another = !peer.started.empty() && now.started != peer.started;
  return another || now.state == "Z" || now.state == "X";
}

void ProcessExitWatcher::run() {
  if (!gone_.empty()) died_(gone_);
  const bool looks =
      std::any_of(peers_.begin(), peers_.end(), [](const Peer& peer) { return !peer.pidfd; });
  std::vector<pollfd> polled = {{stop_.get(), POLLIN, 0}};
  for (const Peer& peer : peers_) polled.push_back({peer.pidfd.get(), POLLIN, 0});
  for (;;) {
    if (::poll(polled.data(), polled.size(), looks ? kLookAgainMs : -1) < 0) continue;  // EINTR
    if (polled[0].revents) return;
    std::vector<int> ended;
    for (size_t i = 0; i < peers_.size(); ++i) {
      Peer& peer = peers_[i];
      if (peer.ended) continue;
      peer.ended = peer.pidfd ? polled[i + 1].revents != 0 : has_ended(peer);
      if (!peer.ended) continue;
      ended.push_back(peer.position);
      polled[i + 1].fd = -1;  // report it only once
    }
    if (!ended.empty()) died_(ended);
  }
}

}  // namespace fleet
