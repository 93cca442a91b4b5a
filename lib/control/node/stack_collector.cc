#include "node/stack_collector.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <thread>
#include <utility>

#include "base/child_process.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/owned_file.h"
#include "base/program_file.h"
#include "base/text.h"
#include "diagnosis/stacks.h"
#include "node/process_tree.h"

namespace fleet {

namespace {

constexpr size_t kMaxPrinted = 16 << 20;  // of one debugger

// Empty if no debugger is installed.
std::vector<std::string> debugger_command(pid_t pid) {
  const std::string number = std::to_string(pid);
  if (const std::string path = find_on_path("eu-stack"); !path.empty()) {
    return {path, "-n", "32", "-p", number};
  }
  if (const std::string path = find_on_path("gdb"); !path.empty()) {
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

StackCollector::StackCollector(EventLoop& loop, size_t at_once)
    : loop_(loop),
      at_once_(at_once > 0 ? at_once : std::max(1u, std::thread::hardware_concurrency())),
      limit_(loop) {}

void StackCollector::prepare(const Target& target) {
  Job& job = *jobs_.emplace_back(std::make_unique<Job>());
  job.target = target;
  job.state = process_state(target.pid);
  job.channel = wait_channel(target.pid);
  job.native.command = debugger_command(target.pid);
  job.native.name = "the debugger";
  if (job.native.command.empty()) {
    job.native.missing = "neither eu-stack (elfutils) nor gdb is installed";
  }
  if (!runs_python(target.pid)) return;
  PythonDebugger python = find_python_debugger(target.pid);
  job.python_kind = python.kind;
  job.python.command = std::move(python.command);
  job.python.name = python.kind == PythonDebugger::kPySpy ? "py-spy" : "gdb";
  job.python.missing = std::move(python.missing);
}

void StackCollector::collect(const std::vector<Target>& targets, std::chrono::milliseconds limit,
                             std::function<void(Stacks)> on_done) {
  if (on_done_) return;  // the pending answer serves this request too
  on_done_ = std::move(on_done);
  jobs_.clear();
  runs_.clear();
  started_ = 0;
  for (const Target& target : targets) prepare(target);
  std::stable_partition(jobs_.begin(), jobs_.end(),
                        [](const auto& job) { return job->state == 'T' || job->state == 't'; });
  for (const auto& job : jobs_) runs_.push_back(&job->native);
  for (const auto& job : jobs_) runs_.push_back(&job->python);
  std::erase_if(runs_, [](const Run* run) { return run->command.empty(); });
  limit_.after(limit, [this] {
    for (Run* run : runs_) {
      if (run->done) continue;
      run->missing = run->pid > 0 ? run->name + " did not end in time" : "no time was left";
      if (run->pid > 0) ::kill(run->pid, SIGKILL);
    }
    finish();
  });
  // Deferred: the callback must not run within this call.
  loop_.post([this] {
    for (size_t i = 0; i < at_once_; ++i) start_next();
    if (runs_.empty()) finish();
  });
}

void StackCollector::start_next() {
  if (on_done_ && started_ < runs_.size()) start(runs_[started_++]);
}

void StackCollector::start(Run* run) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    run->missing = std::string("no pipe: ") + std::strerror(errno);
    return end(run);
  }
  const UniqueFd writing(ends[1]);
  run->output = std::make_unique<LoopDescriptor>(loop_, UniqueFd(ends[0]));
  const UniqueFd nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  ChildProgram debugger;
  debugger.words = run->command;
  debugger.input = nothing.get();
  debugger.output = debugger.errors = writing.get();
  ::sigemptyset(&debugger.blocked_signals.emplace());
  run->pid = start_child(debugger);
  if (run->pid < 0) {
    run->missing = run->command[0] + ": " + std::strerror(errno);
    return end(run);
  }
  read(run);
}

void StackCollector::read(Run* run) {
  run->output->read_some(run->chunk, [this, run](std::error_code error, size_t n) {
    if (error) return end(run);
    const size_t room = kMaxPrinted - run->printed.size();
    run->printed.append(run->chunk, std::min(n, room));
    read(run);
  });
}

void StackCollector::end(Run* run) {
  run->done = true;
  if (!on_done_) return;
  for (const Run* other : runs_) {
    if (!other->done) return start_next();
  }
  finish();
}

StackCluster StackCollector::cluster_of(const Job& job) {
  StackCluster cluster;
  RankStack& stack = *cluster.add_ranks();
  stack.set_local_rank(job.target.local_rank);
  stack.set_state(job.state);
  stack.set_channel(job.channel);
  const auto frames = frames_of(job.native.printed, job.target.pid);
  cluster.mutable_frames()->Assign(frames.begin(), frames.end());
  cluster.set_missing(job.native.missing);
  if (frames.empty() && job.native.missing.empty()) {
    cluster.set_missing(why_nothing(job.native.printed));
  }
  cluster.set_python_missing(job.python.missing);
  if (job.python_kind != PythonDebugger::kNone && job.python.missing.empty()) {
    const PythonFrames python =
        python_frames_of(job.python_kind, job.python.printed, job.target.pid);
    cluster.mutable_python_frames()->Assign(python.frames.begin(), python.frames.end());
    cluster.set_python_missing(python.missing);
  }
  return cluster;
}

void StackCollector::finish() {
  if (!on_done_) return;
  limit_.cancel();
  Stacks stacks;
  for (const auto& job : jobs_) {
    *stacks.add_clusters() = cluster_of(*job);
    const std::string& python = job->python.printed;
    const std::string printed = job->native.printed + (python.empty() ? "" : "Python:\n" + python);
    if (!printed.empty()) keep(job->target.file, printed);
    for (Run* run : {&job->native, &job->python}) {
      if (run->output) run->output->close();
    }
  }
  std::exchange(on_done_, nullptr)(std::move(stacks));
}

}  // namespace fleet
