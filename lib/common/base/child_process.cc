#include "base/child_process.h"

#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "base/file.h"
#include "base/file_size_signal.h"
#include "base/text.h"

namespace fleet {

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (const std::string& text : texts) all.push_back(const_cast<char*>(text.c_str()));
  all.push_back(nullptr);
  return all;
}

pid_t start_child(const ChildProgram& program) {
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  const int streams[] = {program.input, program.output, program.errors};
  for (int standard = 0; standard < 3; ++standard) {
    if (streams[standard] < 0) continue;
    ::posix_spawn_file_actions_adddup2(&actions, streams[standard], standard);
  }
  if (!program.folder.empty()) {
    ::posix_spawn_file_actions_addchdir_np(&actions, program.folder.c_str());
  }
  int flags = (program.own_group ? POSIX_SPAWN_SETPGROUP : 0) |
              (program.own_session ? POSIX_SPAWN_SETSID : 0);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  if (program.blocked_signals) {
    ::posix_spawnattr_setsigmask(&attributes, &*program.blocked_signals);
    flags |= POSIX_SPAWN_SETSIGMASK;
  }
  sigset_t defaults;
  ::sigemptyset(&defaults);
  if (file_size_signal_is_replaced()) ::sigaddset(&defaults, SIGXFSZ);
  if (program.default_signals) ::sigfillset(&defaults);
  ::posix_spawnattr_setsigdefault(&attributes, &defaults);
  flags |= POSIX_SPAWN_SETSIGDEF;
  ::posix_spawnattr_setflags(&attributes, static_cast<short>(flags));  // NOLINT(runtime/int)
  const std::vector<char*> words = pointers_to(program.words);
  std::vector<char*> own;
  if (program.environment) own = pointers_to(*program.environment);
  pid_t pid = -1;
  const char* path = program.path.empty() ? words[0] : program.path.c_str();
  const int error = ::posix_spawnp(&pid, path, &actions, &attributes, words.data(),
                                   program.environment ? own.data() : environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  errno = error;
  return error == 0 ? pid : -1;
}

int wait_for_child(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return exit_code_of(status);
}

ChildResult run_child(ChildProgram program) {
  // Files in memory: a program that fills a pipe would wait for its reader.
  const UniqueFd output(::memfd_create("output", MFD_CLOEXEC));
  const UniqueFd errors(::memfd_create("errors", MFD_CLOEXEC));
  if (!output || !errors) throw_errno("cannot allocate memory for the output of a program");
  program.output = output.get();
  program.errors = errors.get();
  const pid_t pid = start_child(program);
  if (pid < 0) throw_errno("cannot be started", program.words[0], Wanted::kProcess);
  const int exit_code = wait_for_child(pid);
  const auto text = [](const UniqueFd& file) {
    return read_file("/proc/self/fd/" + std::to_string(file.get()));
  };
  return {exit_code, text(output), text(errors)};
}

std::string last_line(std::string_view output) {
  output = trim(output);
  return std::string(trim(output.substr(output.rfind('\n') + 1)));
}

int exit_code_of(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

}  // namespace fleet
