#include "node/end_command.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "base/child_process.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/owned_file.h"
#include "rendezvous/types.h"

namespace fleet {
namespace {

using Clock = std::chrono::steady_clock;

// A killed process ends within this time, unless the kernel holds it.
constexpr std::chrono::milliseconds kKillTime{1'000};

UniqueFd memory_file(const std::string& content) {
  UniqueFd file(::memfd_create("verdict", MFD_CLOEXEC));
  if (!file) throw_errno("cannot allocate memory for the input of --on_end");
  write_all(file.get(), content, "verdict");
  ::lseek(file.get(), 0, SEEK_SET);
  return file;
}

UniqueFd open_log(const std::string& path) {
  try {
    UniqueFd file = open_owned_file(path, O_WRONLY | O_CREAT | O_CLOEXEC);
    if (::ftruncate(file.get(), 0) != 0) throw_errno("cannot be emptied", path);
    return file;
  } catch (const Error& error) {
    spdlog::warn("{}; the output of --on_end follows here", error.what());
    return UniqueFd(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0));
  }
}

// The processes of one group. This process is the parent of their orphans.
class ProcessGroup {
 public:
  // Before its leader starts: a signal that comes at once is not lost.
  explicit ProcessGroup(const std::vector<int>& stop_signals) {
    ::sigemptyset(&awaited_);
    ::sigaddset(&awaited_, SIGCHLD);
    for (const int signal : stop_signals) {
      if (!is_ignored(signal)) ::sigaddset(&awaited_, signal);
    }
    ::pthread_sigmask(SIG_BLOCK, &awaited_, &before_);
  }
  ~ProcessGroup() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  void set_leader(pid_t leader) { leader_ = leader; }
  // Returns whether all have ended. A signal that ends the wait early is in stopped_by().
  bool wait(std::chrono::milliseconds limit) {
    const auto until = Clock::now() + limit;
    while (!all_ended()) {
      const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(until - Clock::now());
      if (left.count() <= 0) return false;
      const timespec time = {static_cast<time_t>(left.count() / 1'000'000'000),
                             static_cast<long>(left.count() % 1'000'000'000)};  // NOLINT
      const int signal = ::sigtimedwait(&awaited_, nullptr, &time);
      if (signal <= 0 || signal == SIGCHLD) continue;
      stopped_by_ = signal;
      return false;
    }
    return true;
  }
  void kill() { ::kill(-leader_, SIGKILL); }
  int stopped_by() const { return stopped_by_; }
  std::optional<int> exit_code() const { return exit_code_; }  // the leader's, if it has ended

 private:
  bool all_ended() {
    int status = 0;
    for (pid_t ended = 0; (ended = ::waitpid(-leader_, &status, WNOHANG)) != 0;) {
      if (ended < 0 && errno == EINTR) continue;
      if (ended < 0) return true;
      if (ended == leader_) exit_code_ = exit_code_of(status);
    }
    return false;
  }

  pid_t leader_ = -1;
  sigset_t awaited_, before_;
  int stopped_by_ = 0;
  std::optional<int> exit_code_;
};

// With the limits of this launcher's caller. The lower priority stays: little is left to do.
pid_t start_with(const std::optional<CallerLimits>& limits, const ChildProgram& program) {
  if (!limits) return start_child(program);
  rlimit own;
  ::getrlimit(RLIMIT_NOFILE, &own);
  rlimit lower = own;
  lower.rlim_cur = std::min(own.rlim_max, limits->descriptors.rlim_cur);
  ::setpriority(PRIO_PROCESS, 0, limits->nice);
  ::setrlimit(RLIMIT_NOFILE, &lower);
  const pid_t pid = start_child(program);
  const int error = errno;
  ::setrlimit(RLIMIT_NOFILE, &own);
  errno = error;
  return pid;
}

void run(const EndCommand& end) {
  const UniqueFd input = memory_file(end.input);
  const UniqueFd log = open_log(end.log);
  ChildProgram program;
  program.words = {"sh", "-c", end.command};
  program.input = input.get();
  program.output = program.errors = log.get();
  program.own_group = true;
  program.blocked_signals = end.signal_mask;
  program.default_signals = true;
  ProcessGroup group(end.stop_signals);
  const pid_t pid = start_with(end.limits, program);
  if (pid < 0) throw_errno("cannot be started", "--on_end", Wanted::kProcess);
  group.set_leader(pid);
  if (!group.wait(end.limit)) {
    group.kill();
    group.wait(kKillTime);
    if (group.stopped_by() != 0) {
      spdlog::warn("--on_end was killed after {}", signal_name(group.stopped_by()));
    } else {
      spdlog::warn("--on_end was killed: it ran for more than {} s; its output: {}",
                   static_cast<double>(end.limit.count()) / 1000, end.log);
    }
  } else if (group.exit_code().value_or(0) != 0) {
    spdlog::warn("--on_end exited with {}; its output: {}", *group.exit_code(), end.log);
  }
}

}  // namespace

bool runs_end_command(const Verdict& verdict, bool hosts_rendezvous, int node_rank) {
  if (hosts_rendezvous) return true;
  if (verdict.kind() != Verdict::NODE_LOST || !verdict.has_node_rank()) return false;
  return node_rank == 1 && verdict.node_rank() == 0;
}

void run_end_command(const EndCommand& end) {
  try {
    run(end);
  } catch (const Error& error) {
    spdlog::warn("--on_end: {}", error.what());
  }
}

}  // namespace fleet
