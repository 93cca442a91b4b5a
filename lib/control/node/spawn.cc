#include "node/spawn.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "base/child_process.h"
#include "base/error.h"
#include "base/file_size_signal.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "node/rank_service.h"

namespace fleet {
namespace {

constexpr size_t kPlaces = 4;  // input, output, error, service

bool is_for_children(int fd) {
  const int flags = ::fcntl(fd, F_GETFD);
  return flags >= 0 && (flags & FD_CLOEXEC) == 0;
}

}  // namespace

std::vector<int> open_descriptors() {
  std::vector<int> all;
  DIR* folder = ::opendir("/proc/self/fd");
  if (!folder) return all;
  while (const dirent* entry = ::readdir(folder)) {
    const int fd = std::atoi(entry->d_name);
    if (fd > STDERR_FILENO && fd != ::dirfd(folder)) all.push_back(fd);
  }
  ::closedir(folder);
  return all;
}

RankDescriptors::RankDescriptors() {
  if (::close_range(~0u, ~0u, 0) != 0) return;
  for (size_t i = 0; i <= kPlaces; ++i) {
    UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!null) throw_errno("cannot open /dev/null");
    if (i == kPlaces) {
      null_ = std::move(null);
    } else {
      bound_ = std::max(bound_, null.get() + 1);
      places_.push_back(std::move(null));
    }
  }
  for (const int fd : open_descriptors()) {
    if (is_for_children(fd)) bound_ = std::max(bound_, fd + 1);
  }
}

int RankDescriptors::duplicate(int fd) { return ::dup3(fd, places_[used_++].get(), O_CLOEXEC); }

// Otherwise the guardian would keep a rank's pipes open.
void RankDescriptors::release() {
  while (used_ > 0) ::dup3(null_.get(), places_[--used_].get(), O_CLOEXEC);
}

void close_parents_descriptors(std::span<const int> kept) {
  for (const int fd : open_descriptors()) {
    const bool keep = std::find(kept.begin(), kept.end(), fd) != kept.end();
    if (!keep && !is_for_children(fd)) ::close(fd);
  }
}

namespace {

std::vector<std::string> environment_of(const wire::RankCommand& rank) {
  const auto replaced = [&](std::string_view name) {
    const auto& removed = rank.removed();
    const auto& set = rank.environment();
    return std::find(removed.begin(), removed.end(), name) != removed.end() ||
           std::any_of(set.begin(), set.end(),
                       [&](const auto& variable) { return variable.name() == name; });
  };
  std::vector<std::string> all;
  for (char** entry = environ; *entry; ++entry) {
    const std::string_view text = *entry;
    if (!replaced(text.substr(0, text.find('=')))) all.emplace_back(text);
  }
  for (const auto& variable : rank.environment()) {
    all.push_back(variable.name() + "=" + variable.value());
  }
  return all;
}

// Whether standard output and error must be kept apart.
bool has_two_streams(const wire::RankCommand& rank) {
  const int shown = rank.shown_streams();
  return rank.splits_streams() || shown == wire::RankCommand::STANDARD_OUTPUT ||
         shown == wire::RankCommand::STANDARD_ERROR || (shown != 0 && rank.shows_apart());
}

// Stores our end in `ours`; returns the rank's.
UniqueFd make_service_socket(UniqueFd* ours) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    throw_errno("cannot create a rank's service socket");
  }
  *ours = UniqueFd(ends[0]);
  return UniqueFd(ends[1]);
}

// Signals with a handler, which must not run in a child that shares our memory. All handlers are
// installed before the first rank starts.
const std::vector<int>& handled_signals() {
  static const std::vector<int> signals = [] {
    std::vector<int> handled;
    for (int signal = 1; signal < NSIG; ++signal) {
      struct sigaction action;
      if (::sigaction(signal, nullptr, &action) != 0) continue;
      if (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN) handled.push_back(signal);
    }
    return handled;
  }();
  return signals;
}

// Everything the child needs, prepared before it exists: between vfork() and execve() it shares our
// memory and may only make system calls.
struct ChildPlan {
  char* const* argv;
  char* const* environment;
  int null, output, error, service;  // service: -1 for none
  int bound;  // shared descriptors from this number on are not its own; 0: not shared
  pid_t parent;
  const std::vector<int>& handled;  // signals
  const sigset_t* mask;
  const cpu_set_t* cores;     // nullptr: not pinned
  const rlimit* descriptors;  // nullptr: unchanged
};

// Call it last, because the other descriptors may have occupied its target.
bool keep_service_socket(int service) {
  if (service < 0) return true;
  // dup2() onto itself would leave it close-on-exec.
  if (service == kServiceDescriptor) return ::fcntl(service, F_SETFD, 0) == 0;
  return ::dup2(service, kServiceDescriptor) >= 0;
}

// Without the address sanitizer, which does not know the stack of fork_sharing() and overwrites it.
[[noreturn, gnu::no_sanitize_address]] void run_child(const ChildPlan& plan, volatile int* failed) {
  if (plan.bound > 0 &&
      ::close_range(static_cast<unsigned>(plan.bound), ~0u, CLOSE_RANGE_UNSHARE) != 0) {
    *failed = errno;
    ::_exit(127);
  }
  // The thread sanitizer has a table of handlers in the memory that the parent shares: the parent's
  // would be lost. execve() resets them too.
#ifndef __SANITIZE_THREAD__
  for (const int signal : plan.handled) ::signal(signal, SIG_DFL);
#endif
  restore_file_size_signal();
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != plan.parent) ::_exit(127);  // the parent died before the line above
  if (plan.cores) ::sched_setaffinity(0, sizeof(cpu_set_t), plan.cores);
  if (plan.descriptors) ::setrlimit(RLIMIT_NOFILE, plan.descriptors);
  if (::dup2(plan.null, 0) >= 0 && ::dup2(plan.output, 1) >= 0 && ::dup2(plan.error, 2) >= 0 &&
      keep_service_socket(plan.service)) {
    ::sigprocmask(SIG_SETMASK, plan.mask, nullptr);
    ::execve(plan.argv[0], plan.argv, plan.environment);
  }
  *failed = errno;
  ::_exit(127);
}

struct Child {
  const ChildPlan& plan;
  volatile int failed = 0;
};

[[gnu::no_sanitize_address]] int run_on_own_stack(void* it) {
  auto* child = static_cast<Child*>(it);
  run_child(child->plan, &child->failed);
}

// Like vfork(), but the child also shares the descriptors until close_range(), above.
pid_t fork_sharing(Child* child) {
  alignas(16) static char stack[64 << 10];  // one child at a time
  return ::clone(run_on_own_stack, stack + sizeof stack,
                 CLONE_VM | CLONE_VFORK | CLONE_FILES | SIGCHLD, child);
}

// Not inlined, because the child would share a variable that changes after vfork().
[[gnu::noinline]] pid_t start(Child* child, bool sharing) {
  const pid_t pid = sharing ? fork_sharing(child) : ::vfork();
  if (pid == 0) run_child(child->plan, &child->failed);
  return pid;
}

struct Pipe {
  UniqueFd reading, writing;
};

// Large, so that a rank that writes much seldom waits for the loop.
Pipe make_pipe() {
  constexpr int kPipeSize = 256 << 10;  // a user's pipes may have 64 MiB together by default
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw_errno("cannot create a pipe for a rank's output");
  ::fcntl(ends[0], F_SETPIPE_SZ, kPipeSize);  // an unprivileged user may have used up the limit
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

// A script whose interpreter does not exist fails as if the script did not.
std::string exec_failure(const std::string& path, int error) {
  const std::string text = std::strerror(error);
  if (error == ENOEXEC) return text + "; a script needs a first line such as #!/bin/sh";
  char start[256] = "";
  if (error == ENOENT) std::ifstream(path).getline(start, sizeof start);
  const std::string line = start;
  if (!line.starts_with("#!")) return text;
  const std::string interpreter(trim(std::string_view(line).substr(2)));
  return text + ": its interpreter '" + shown_path(interpreter.substr(0, interpreter.find(' '))) +
         "' does not exist" +
         (line.ends_with('\r') ? " under that name; the script has Windows line ends: convert it "
                                 "with dos2unix"
                               : "");
}

}  // namespace

SpawnResult spawn_rank(const wire::RankCommand& rank, const sigset_t& mask, const rlimit* limit,
                       RankDescriptors* low_descriptors) {
  const std::vector<std::string> arguments = texts(rank.argv()), variables = environment_of(rank);
  const std::vector<char*> argv = pointers_to(arguments), environment = pointers_to(variables);
  cpu_set_t cores;
  CPU_ZERO(&cores);
  for (const int core : rank.cores()) CPU_SET(core, &cores);

  Pipe output = make_pipe(), error;
  if (has_two_streams(rank)) error = make_pipe();
  SpawnResult spawned;
  spawned.output = {std::move(output.reading), std::move(error.reading)};
  const UniqueFd service =
      rank.service_socket() ? make_service_socket(&spawned.service) : UniqueFd();
  const UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!null) throw_errno("cannot open /dev/null");

  // Our handlers must not run in the child while it shares our memory.
  sigset_t all, before;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, &before);
  RankDescriptors* const shared =
      low_descriptors && low_descriptors->usable() ? low_descriptors : nullptr;
  const auto duplicate = [&](int fd) { return shared && fd >= 0 ? shared->duplicate(fd) : fd; };
  const int output_end = duplicate(output.writing.get());
  const ChildPlan plan{argv.data(),
                       environment.data(),
                       duplicate(null.get()),
                       output_end,
                       error.writing ? duplicate(error.writing.get()) : output_end,
                       duplicate(service.get()),
                       shared ? shared->bound() : 0,
                       ::getpid(),
                       handled_signals(),
                       &mask,
                       rank.cores().empty() ? nullptr : &cores,
                       limit};
  Child child{plan};
  const pid_t pid = start(&child, shared != nullptr);
  const int fork_error = errno, failed = child.failed;
  if (shared) shared->release();
  ::sigprocmask(SIG_SETMASK, &before, nullptr);

  if (pid < 0) {
    spawned.error = SystemError(ErrorCode::kIo, "cannot start another process", fork_error, {},
                                Wanted::kProcess)
                        .what();
  } else if (failed != 0) {
    ::waitpid(pid, nullptr, 0);
    spawned.error = "cannot execute '" + rank.argv(0) + "': " + exec_failure(rank.argv(0), failed);
  } else {
    spawned.pid = pid;
  }
  return spawned;
}

}  // namespace fleet
