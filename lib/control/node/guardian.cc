#include "node/guardian.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "base/process_title.h"
#include "base/terminal_text.h"
#include "node/console.h"
#include "node/process_tree.h"
#include "node/spawn.h"
#include "observe/rank_progress.h"

namespace fleet {
namespace {

constexpr int kLauncherNice = -10;

// `alive`: the reading end of the watchdog's pipe; `holds`: its writing end, held open here too.
[[noreturn]] void guardian_main(UniqueFd socket, UniqueFd alive, UniqueFd holds,
                                const sigset_t& original, const std::string& job) {
  int code = 0;
  try {
    ::prctl(PR_SET_NAME, "fleet-guardian");
    set_process_title("fleetrun: guardian of job " + shown_name(job));
    become_subreaper();
    close_parents_descriptors(std::array{socket.get(), alive.get(), holds.get()});
    // A message without a reader must not keep it from killing.
    for (const int fd : {STDOUT_FILENO, STDERR_FILENO}) {
      const UniqueFd own(open_nonblocking(fd));
      if (own) ::dup2(own.get(), fd);
    }
    // Each rank costs the guardian some descriptors. The ranks' own limit stays unchanged.
    rlimit descriptors, most;
    ::getrlimit(RLIMIT_NOFILE, &descriptors);
    most = descriptors;
    most.rlim_cur = most.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &most);
    run_guardian_loop(std::move(socket), std::move(alive), original, descriptors, job);
  } catch (const std::exception& error) {
    spdlog::error("guardian: {}", error.what());
    code = 1;
  }
  ::_exit(code);
}

}  // namespace

sigset_t block_all_signals() {
  sigset_t all, original;
  ::sigfillset(&all);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) ::sigdelset(&all, fault);
  ::pthread_sigmask(SIG_SETMASK, &all, &original);
  return original;
}

bool is_ignored(int signal) {
  struct sigaction action;
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

std::vector<int> passed_signals() {
  std::vector<int> passed = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
  std::erase_if(passed, is_ignored);
  return passed;
}

std::string rank_environment_prefix(pid_t guardian) {
  return std::string(kEnvProgressFile) + "=/proc/" + std::to_string(guardian) + "/fd/";
}

GuardianProcess start_guardian(const sigset_t& original, const std::string& job) {
  int sockets[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) {
    throw_errno("cannot create a socket pair");
  }
  int alive[2];
  if (::pipe2(alive, O_CLOEXEC) != 0) throw_errno("cannot create a pipe");
  GuardianProcess guardian{-1, UniqueFd(sockets[0]), UniqueFd(alive[1]), {}};
  guardian.limits.nice = ::getpriority(PRIO_PROCESS, 0);
  ::getrlimit(RLIMIT_NOFILE, &guardian.limits.descriptors);
  UniqueFd theirs(sockets[1]), watched(alive[0]);
  become_subreaper();
  guardian.pid = ::fork();
  if (guardian.pid < 0) throw_errno("cannot start the guardian process", {}, Wanted::kProcess);
  if (guardian.pid == 0) {
    guardian.socket.reset();
    guardian_main(std::move(theirs), std::move(watched), std::move(guardian.alive), original, job);
  }
  // Ranks may use every core: raise the priority of the process that sends heartbeats, if allowed.
  // Not that of the guardian, because the ranks inherit it.
  ::setpriority(PRIO_PROCESS, 0, kLauncherNice);
  return guardian;
}

}  // namespace fleet
