#include "launch/planning/run_process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "base/file.h"

namespace fleet {

namespace {

struct Pipe {
  UniqueFd reading, writing;
  Pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) throw_errno("cannot make a pipe");
    reading = UniqueFd(ends[0]);
    writing = UniqueFd(ends[1]);
  }
};

// Appends what is there to read; false at the end of the pipe.
bool read_some(const UniqueFd& pipe, std::string* to) {
  char buffer[4096];
  const ssize_t n = ::read(pipe.get(), buffer, sizeof buffer);
  if (n > 0) to->append(buffer, static_cast<size_t>(n));
  return n > 0 || (n < 0 && errno == EINTR);
}

// Reads both pipes to their ends: a program that fills one of them would wait for ever otherwise.
void read_all(const UniqueFd& output, const UniqueFd& errors, ProcessResult* finished) {
  pollfd open[2] = {{output.get(), POLLIN, 0}, {errors.get(), POLLIN, 0}};
  while (open[0].fd >= 0 || open[1].fd >= 0) {
    if (::poll(open, 2, -1) < 0 && errno != EINTR) throw_errno("cannot wait for a program");
    if (open[0].revents != 0 && !read_some(output, &finished->output)) open[0].fd = -1;
    if (open[1].revents != 0 && !read_some(errors, &finished->error_output)) open[1].fd = -1;
  }
}

}  // namespace

ProcessResult run_process(const std::vector<std::string>& argv) {
  Pipe output, errors;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, output.writing.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, errors.writing.get(), STDERR_FILENO);
  std::vector<char*> words;
  for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  pid_t pid = -1;
  errno = ::posix_spawn(&pid, words[0], &actions, nullptr, words.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (errno != 0) throw_errno("cannot be started", argv[0]);
  output.writing.reset();
  errors.writing.reset();
  ProcessResult finished;
  read_all(output.reading, errors.reading, &finished);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  finished.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return finished;
}

}  // namespace fleet
