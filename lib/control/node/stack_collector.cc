#include "node/stack_collector.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "base/child_process.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/owned_file.h"
#include "base/program_file.h"
#include "base/text.h"
#include "diagnosis/stacks.h"
#include "node/proc_view.h"
#include "node/process_tree.h"

namespace fleet {
namespace {

constexpr size_t kMaxPrinted = 16 << 20;  // output of one debugger

std::vector<std::string> gdb_command(const std::string& gdb, pid_t pid, const char* command) {
  return {gdb,
          "-nx",
          "-batch",
          "-iex",
          "set width 0",
          "-iex",
          "set debuginfod enabled off",
          "-p",
          std::to_string(pid),
          "-ex",
          command};
}

// Empty if no debugger is installed.
std::vector<std::string> debugger_command(pid_t pid) {
  if (const std::string path = find_on_path("eu-stack"); !path.empty()) {
    return {path, "-n", "32", "-p", std::to_string(pid)};
  }
  if (const std::string path = find_on_path("gdb"); !path.empty()) {
    return gdb_command(path, pid, "thread apply all bt 32");
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

constexpr size_t kMaxFrames = 24, kMaxName = 120, kMaxReason = 200;

// "/usr/bin/python3.11"; "" if it cannot be read.
std::string executable_of(pid_t pid) {
  std::error_code error;
  return std::filesystem::read_symlink(proc_folder(pid) + "/exe", error).string();
}

std::string frame_text(const std::string& function, const std::string& file, int64_t line) {
  return function.substr(0, kMaxName) + " (" + file + ":" + std::to_string(line) + ")";
}

// py-spy prints "Error: Failed to ...", "Caused by:" and a backtrace of itself.
std::string reason_in(const std::string& printed, const std::string& debugger) {
  for (const std::string& line : split(printed, '\n')) {
    if (line.empty()) continue;
    return debugger + " printed no Python stack: " +
           (line.starts_with("Error: ") ? line.substr(7) : line).substr(0, kMaxReason);
  }
  return debugger + " printed no Python stack";
}

PythonFrames frames_of_py_spy(const std::string& printed, pid_t pid) {
  PythonFrames found;
  // Warnings of py-spy may come first.
  size_t begin = printed.find("[\n");
  if (begin == std::string::npos) begin = printed.find('[');
  const auto threads = Json::try_parse(printed.substr(std::min(begin, printed.size())));
  const auto is_main = [&](const Json& thread) {
    return thread.is_object() && (thread.value("os_thread_id", Json()) == Json(pid) ||
                                  thread.value("thread_name", Json()) == Json("MainThread"));
  };
  if (threads && threads->is_array()) {
    const auto main = std::find_if(threads->begin(), threads->end(), is_main);
    const Json frames = main == threads->end() ? Json() : main->value("frames", Json());
    for (const Json& frame : frames) {
      if (!frame.is_object() || found.frames.size() == kMaxFrames) continue;
      const auto text = [&](const char* key) {
        const Json value = frame.value(key, Json());
        return value.is_string() ? value.get<std::string>() : std::string("?");
      };
      const Json line = frame.value("line", Json());
      found.frames.push_back(frame_text(text("name"), text("filename"),
                                        line.is_number_integer() ? line.get<int64_t>() : 0));
    }
  }
  if (found.frames.empty()) found.missing = reason_in(printed, "py-spy");
  return found;
}

// Lines of py-bt: '  File "/data/train.py", line 12, in step'.
PythonFrames frames_of_gdb(const std::string& printed) {
  PythonFrames found;
  for (const std::string& raw : split(printed, '\n')) {
    const std::string_view line = trim(raw);
    constexpr std::string_view kFile = "File \"", kLine = "\", line ", kIn = ", in ";
    if (!line.starts_with(kFile) || found.frames.size() == kMaxFrames) continue;
    const size_t end = line.find(kLine), in = line.find(kIn, std::min(end, line.size()));
    long long number = 0;
    if (end == std::string_view::npos || in == std::string_view::npos) continue;
    const size_t digits = end + kLine.size();
    if (!parse_int(std::string(line.substr(digits, in - digits)), &number)) continue;
    found.frames.push_back(frame_text(std::string(line.substr(in + kIn.size())),
                                      std::string(line.substr(kFile.size(), end - kFile.size())),
                                      number));
  }
  if (!found.frames.empty()) return found;
  found.missing = "gdb found no Python frames; py-spy would show them (pip install py-spy)";
  return found;
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

bool runs_python(pid_t pid) {
  const std::string path = executable_of(pid);
  return path.substr(path.rfind('/') + 1).starts_with("python");
}

PythonDebugger find_python_debugger(pid_t pid) {
  PythonDebugger found;
  if (const std::string path = find_on_path("py-spy"); !path.empty()) {
    // Without pausing it: py-spy cannot pause a process that is stopped already.
    return {PythonDebugger::kPySpy,
            {path, "dump", "--json", "--nonblocking", "--pid", std::to_string(pid)},
            {}};
  }
  const std::string script = "/usr/share/gdb/auto-load" + executable_of(pid) + "-gdb.py";
  const std::string gdb = find_on_path("gdb");
  if (!gdb.empty() && ::access(script.c_str(), R_OK) == 0) {
    return {PythonDebugger::kGdb, gdb_command(gdb, pid, "py-bt"), {}};
  }
  found.missing =
      "py-spy on the PATH of fleetrun (pip install py-spy), or gdb with python3-dbg, would show "
      "its Python frames";
  return found;
}

PythonFrames python_frames_of(PythonDebugger::Kind kind, const std::string& printed, pid_t pid) {
  return kind == PythonDebugger::kPySpy ? frames_of_py_spy(printed, pid) : frames_of_gdb(printed);
}

}  // namespace fleet
