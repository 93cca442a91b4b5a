#include "node/stack_collector.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <cstring>
#include <thread>

#include "base/env.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/owned_file.h"
#include "base/text.h"
#include "node/process_tree.h"
#include "rendezvous/stacks.h"

namespace fleet {

namespace asio = boost::asio;

namespace {

std::string find_program(const std::string& name) {
  for (const std::string& folder : split(env_or("PATH", "/usr/local/bin:/usr/bin:/bin"), ':')) {
    const std::string path = folder + "/" + name;
    if (::access(path.c_str(), X_OK) == 0) return path;
  }
  return {};
}

// Empty if no debugger is installed.
std::vector<std::string> debugger_command(pid_t pid) {
  const std::string number = std::to_string(pid);
  if (const std::string path = find_program("eu-stack"); !path.empty()) {
    return {path, "-n", "32", "-p", number};
  }
  if (const std::string path = find_program("gdb"); !path.empty()) {
    return {path,
            "-nx",
            "-batch",
            "-iex",
            "set width 0",
            "-iex",
            "set debuginfod enabled off",
            "-p",
            number,
            "-ex",
            "thread apply all bt 32"};
  }
  return {};
}

pid_t start_debugger(std::vector<std::string> command, int output) {
  std::vector<char*> words;
  for (std::string& word : command) words.push_back(word.data());
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  ::sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  pid_t pid = -1;
  errno = ::posix_spawn(&pid, words[0], &actions, &attributes, words.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  return errno == 0 ? pid : -1;
}

std::string why_nothing(const std::string& printed) {
  if (printed.find("not permitted") != std::string::npos) {
    return "the debugger is not allowed to attach (kernel.yama.ptrace_scope, CAP_SYS_PTRACE)";
  }
  const std::string_view text = trim(printed);
  const std::string_view last = text.substr(text.rfind('\n') + 1);
  return "the debugger printed no stack" +
         (last.empty() ? "" : ": " + std::string(last.substr(0, 200)));
}

void keep(const std::string& path, const std::string& printed) {
  try {
    write_owned_file(path, printed);
  } catch (const Error& error) {
    spdlog::warn("{}", error.what());
  }
}

}  // namespace

StackCollector::StackCollector(asio::io_context& loop, size_t at_once)
    : loop_(loop),
      at_once_(at_once > 0 ? at_once : std::max(1u, std::thread::hardware_concurrency())),
      limit_(loop) {}

void StackCollector::collect(const std::vector<Target>& targets, std::chrono::milliseconds limit,
                             std::function<void(Stacks)> on_done) {
  if (on_done_) return;  // the pending answer serves this request too
  on_done_ = std::move(on_done);
  jobs_.clear();
  started_ = 0;
  for (const Target& target : targets) {
    jobs_.push_back(std::make_unique<Job>());
    jobs_.back()->target = target;
    jobs_.back()->state = process_state(target.pid);
    jobs_.back()->channel = wait_channel(target.pid);
  }
  std::stable_partition(jobs_.begin(), jobs_.end(),
                        [](const auto& job) { return job->state == 'T' || job->state == 't'; });
  limit_.expires_after(limit);
  limit_.async_wait([this](boost::system::error_code error) {
    if (error) return;
    for (const auto& job : jobs_) {
      if (job->done) continue;
      job->missing = job->debugger > 0 ? "the debugger did not end in time" : "no time was left";
      if (job->debugger > 0) ::kill(job->debugger, SIGKILL);
    }
    finish();
  });
  // Deferred: the callback must not run within this call.
  asio::post(loop_, [this] {
    for (size_t i = 0; i < at_once_; ++i) start_next();
    if (jobs_.empty()) finish();
  });
}

void StackCollector::start_next() {
  if (on_done_ && started_ < jobs_.size()) start(jobs_[started_++].get());
}

void StackCollector::start(Job* job) {
  const std::vector<std::string> command = debugger_command(job->target.pid);
  int ends[2];
  if (command.empty()) {
    job->missing = "neither eu-stack (elfutils) nor gdb is installed";
    return end(job);
  }
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    job->missing = std::string("no pipe: ") + std::strerror(errno);
    return end(job);
  }
  const UniqueFd writing(ends[1]);
  job->output = std::make_unique<asio::posix::stream_descriptor>(loop_, ends[0]);
  job->debugger = start_debugger(command, writing.get());
  if (job->debugger < 0) {
    job->missing = command[0] + ": " + std::strerror(errno);
    return end(job);
  }
  read(job);
}

void StackCollector::read(Job* job) {
  job->output->async_read_some(asio::buffer(job->chunk),
                               [this, job](boost::system::error_code error, size_t n) {
                                 if (error == asio::error::operation_aborted) return;
                                 if (error) return end(job);
                                 job->printed.append(job->chunk, n);
                                 read(job);
                               });
}

void StackCollector::end(Job* job) {
  job->done = true;
  if (!on_done_) return;
  for (const auto& other : jobs_) {
    if (!other->done) return start_next();
  }
  finish();
}

void StackCollector::finish() {
  if (!on_done_) return;
  limit_.cancel();
  Stacks stacks;
  for (const auto& job : jobs_) {
    StackCluster& cluster = *stacks.add_clusters();
    RankStack& stack = *cluster.add_ranks();
    stack.set_local_rank(job->target.local_rank);
    const auto frames = frames_of(job->printed, job->target.pid);
    cluster.mutable_frames()->Assign(frames.begin(), frames.end());
    cluster.set_missing(job->missing);
    if (frames.empty() && job->missing.empty()) cluster.set_missing(why_nothing(job->printed));
    stack.set_state(job->state);
    stack.set_channel(job->channel);
    if (!job->printed.empty()) keep(job->target.file, job->printed);
    if (job->output) job->output->close();
  }
  std::exchange(on_done_, nullptr)(std::move(stacks));
}

}  // namespace fleet
