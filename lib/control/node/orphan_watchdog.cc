#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/log.h"
#include "base/process_title.h"
#include "base/terminal_text.h"
#include "node/guardian.h"
#include "node/job_cgroup.h"
#include "node/proc_view.h"
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

// A descriptor from which to read passed_signals(); they stay blocked.
int open_signals() {
  sigset_t passed;
  ::sigemptyset(&passed);
  for (const int signal : passed_signals()) ::sigaddset(&passed, signal);
  return ::signalfd(-1, &passed, SFD_CLOEXEC);
}

void pass_signal(int signals, int told) {
  signalfd_siginfo info;
  if (::read(signals, &info, sizeof info) != sizeof info) return;
  const char number = static_cast<char>(info.ssi_signo);
  (void)!::write(told, &number, 1);  // the guardian may have ended
}

// Passes signals on until the end of a pipe without data, which ends with its last writer. Returns
// false if the pipe is not readable, which proves nothing.
bool wait_for_end_of_file(int fd, int told) {
  pollfd awaited[] = {{fd, POLLIN, 0}, {open_signals(), POLLIN, 0}};
  for (;;) {
    if (::poll(awaited, 2, -1) < 0 && errno != EINTR) return false;
    if ((awaited[1].revents & POLLIN) != 0) pass_signal(awaited[1].fd, told);
    if (awaited[0].revents == 0) continue;
    char byte;
    const ssize_t n = ::read(fd, &byte, 1);
    if (n == 0) return true;
    if (n < 0 && errno != EINTR) return false;
  }
}

[[noreturn]] void watch(int alive, int told, const std::string& mark, const std::string& job) {
  ::prctl(PR_SET_NAME, "fleet-watchdog");
  ::setsid();  // out of reach of a kill of the launcher's process group
  const int passes = ::dup2(told, STDOUT_FILENO);  // -1 without a pipe
  close_all_but(alive);
  set_process_title("fleetrun: watchdog of job " + shown_name(job));
  if (!wait_for_end_of_file(STDIN_FILENO, passes)) ::_exit(1);
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

UniqueFd OrphanWatchdog::start() {
  if (pid_ > 0 || !alive_ || !ProcView::own().usable()) return {};
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) spdlog::debug("the watchdog passes no signals");
  UniqueFd signals(ends[0]);
  const UniqueFd told(ends[1]);
  sigset_t all, before;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, &before);
  pid_ = ::fork();
  if (pid_ == 0) watch(alive_.get(), told.get(), mark_, job_);
  const int error = errno;
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  if (pid_ < 0) {
    const SystemError refused(ErrorCode::kIo, "cannot start the watchdog of this job", error, {},
                              Wanted::kProcess);
    spdlog::warn("{}", refused.what());
  }
  return signals;
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
