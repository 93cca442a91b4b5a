#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/log.h"
#include "node/guardian.h"
#include "node/job_cgroup.h"
#include "node/process_tree.h"
#include "node/spawn.h"

namespace fleet {
namespace {

// If no new process appears for this long, all that were being forked have been found.
constexpr int kRounds = 250, kRoundMs = 20;
// Without /proc, the numbers below this one are closed: a launcher and its guardian have fewer.
constexpr int kMostDescriptors = 1 << 16;

// Closes the guardian's descriptors: held open here, they would hide its end from others.
void close_all_but(int fd) {
  ::dup2(fd, STDIN_FILENO);
  if (::syscall(SYS_close_range, STDERR_FILENO + 1, ~0u, 0) == 0) return;
  if (fd > STDERR_FILENO) ::close(fd);  // the listing needs a free one
  const std::vector<int> all = open_descriptors();
  for (const int other : all) ::close(other);
  if (!all.empty()) return;
  for (int other = STDERR_FILENO + 1; other < kMostDescriptors; ++other) ::close(other);
}

// Waits for the end of a pipe without data: it ends with its last writer. Returns false if the pipe
// is not readable, which proves nothing.
bool wait_for_end_of_file(int fd) {
  char byte;
  for (;;) {
    const ssize_t n = ::read(fd, &byte, 1);
    if (n == 0) return true;
    if (n < 0 && errno != EINTR) return false;
  }
}

[[noreturn]] void watch(int alive, const std::string& mark) {
  ::prctl(PR_SET_NAME, "fleet-watchdog");
  ::setsid();  // out of reach of a kill of the launcher's process group
  close_all_but(alive);
  if (!wait_for_end_of_file(STDIN_FILENO)) ::_exit(1);
  try {
    remove_stale_job_cgroups();
    for (int round = 0; round < kRounds; ++round) {
      const std::vector<pid_t> left = processes_with_environment(mark);
      if (left.empty()) break;
      for (const pid_t pid : left) ::kill(pid, SIGKILL);
      ::poll(nullptr, 0, kRoundMs);
    }
    remove_stale_job_cgroups();
  } catch (const std::exception& error) {
    spdlog::error("{}", error.what());
  }
  ::_exit(0);
}

}  // namespace

void OrphanWatchdog::start() {
  if (pid_ > 0 || !alive_) return;
  sigset_t all, before;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, &before);
  pid_ = ::fork();
  if (pid_ == 0) watch(alive_.get(), mark_);
  const int error = errno;
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  if (pid_ < 0) {
    const SystemError refused(ErrorCode::kIo, "cannot start the watchdog of this job", error, {},
                              Wanted::kProcess);
    spdlog::warn("{}", refused.what());
  }
}

void OrphanWatchdog::on_child_ended(pid_t pid) {
  if (pid == pid_) pid_ = -1;
}

void OrphanWatchdog::end() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

}  // namespace fleet
