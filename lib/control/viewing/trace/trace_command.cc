// fleetrun trace [JOB]: what every rank does during some steps, as one file for Perfetto.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/clock.h"
#include "base/commands.h"
#include "base/counted.h"
#include "base/error.h"
#include "base/file.h"
#include "base/regular_file.h"
#include "node/control_socket.h"
#include "node/job_record.h"
#include "viewing/trace/job_trace.h"

namespace fleet {
namespace {

constexpr int kAnswerSeconds = 10;
constexpr int kPollMs = 200;
constexpr double kLineSeconds = 10;  // between lines of progress without a terminal

std::atomic<int> interrupted{0};

// While it lives, Ctrl-C ends the wait and keeps the data so far; a second one ends the program.
class InterruptedWait {
 public:
  InterruptedWait() {
    struct sigaction action = {};
    action.sa_handler = [](int signal) { interrupted = signal; };
    action.sa_flags = SA_RESETHAND;
    ::sigaction(SIGINT, &action, &before_);
  }
  ~InterruptedWait() { ::sigaction(SIGINT, &before_, nullptr); }
  InterruptedWait(const InterruptedWait&) = delete;

 private:
  struct sigaction before_ = {};
};

// On standard error: redrawn on a terminal, else a line now and then.
class ProgressLine {
 public:
  explicit ProgressLine(int64_t steps) : steps_(steps) {}
  void show(const TraceProgress& progress) {
    const std::string text = "trace: " + std::to_string(progress.min_steps) + " of " +
                             counted(static_cast<int>(steps_), "step") + " on all of " +
                             counted(progress.ranks, "rank");
    if (terminal_) {
      std::fprintf(stderr, "\r%s", text.c_str());
      drawn_ = true;
    } else if (monotonic_seconds() >= next_) {
      next_ = monotonic_seconds() + kLineSeconds;
      std::fprintf(stderr, "%s\n", text.c_str());
    }
  }
  void end() {
    if (std::exchange(drawn_, false)) std::fputs("\n", stderr);
  }

 private:
  const int64_t steps_;
  const bool terminal_ = ::isatty(STDERR_FILENO) == 1;
  bool drawn_ = false;
  double next_ = monotonic_seconds() + kLineSeconds;
};

void gather(TraceCollection* collection, int steps, double timeout) {
  const InterruptedWait interrupts;
  const double end = monotonic_seconds() + timeout;
  ProgressLine line(steps);
  collection->begin(steps);
  while (collection->poll()) {
    line.show(collection->progress());
    if (interrupted != 0 || monotonic_seconds() >= end) break;
    ::poll(nullptr, 0, kPollMs);
  }
  line.end();
  collection->finish();
}

std::string file_beside(const std::string& path) {
  return path + "." + std::to_string(::getpid()) + ".part";
}

// Check before the ranks record steps that could not be kept.
void check_output(const std::string& path) {
  check_replaceable(path);
  const std::string beside = file_beside(path);
  const UniqueFd file(::open(beside.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666));
  if (!file) {
    throw Error(ErrorCode::kUsage, std::string("cannot write the trace: ") + std::strerror(errno),
                path, "name a file in a writable folder with --output");
  }
  ::unlink(beside.c_str());
}

// Beside its path, then renamed: a file of that name is always whole.
void write_trace(const JobTrace& trace, const std::string& path) {
  const std::string beside = file_beside(path);
  const auto failed = [&](const char* what) {
    const int why = errno;
    ::unlink(beside.c_str());
    errno = why;
    throw_errno(what, path);
  };
  std::FILE* file = std::fopen(beside.c_str(), "wbe");
  if (!file) throw_errno("cannot write the trace", path);
  write_perfetto(trace,
                 [&](std::string_view bytes) { std::fwrite(bytes.data(), 1, bytes.size(), file); });
  const bool whole = std::fflush(file) == 0 && std::ferror(file) == 0;
  if (std::fclose(file) != 0 || !whole) failed("cannot write the trace");
  if (::rename(beside.c_str(), path.c_str()) != 0) failed("cannot rename the trace");
}

std::string default_path(const std::string& job) {
  std::string name = job;
  for (char& c : name) {
    if (c == '/') c = '_';
  }
  return name + ".perfetto-trace";
}

int run_trace(const CommandLine& line) {
  const JobRecord job = running_job_called(line.words.empty() ? "" : line.words[0], "trace");
  const auto ask = [pid = job.pid()](const TraceRequest& request) {
    wire::ControlRequest control;
    *control.mutable_trace() = request;
    return send_control_request(pid, control, kAnswerSeconds).trace();
  };
  const int steps = static_cast<int>(line.settings.integer("steps"));
  const std::string path = line.settings.text("output").empty() ? default_path(job.job_id())
                                                                : line.settings.text("output");
  check_output(path);
  std::vector<MergedFile> merged;
  std::vector<std::string> contents;  // read first: a mistyped path is noticed at once
  for (const std::string& given : line.settings.texts("merge")) {
    merged.push_back(merged_file(given));
    contents.push_back(read_file(merged.back().path));
  }
  TraceCollection collection(job.job_id(), ask);
  gather(&collection, steps, line.settings.number("timeout"));
  JobTrace trace = collection.trace();
  for (const std::string& missing : collection.missing()) {
    std::fprintf(stderr, "fleetrun trace: %s\n", missing.c_str());
  }
  if (trace.ranks.empty()) {
    throw Error(ErrorCode::kNotFound, "no rank has recorded anything", "job " + job.job_id(),
                "try again while it trains");
  }
  bool whole = collection.missing().empty();
  for (size_t i = 0; i < merged.size(); ++i) {
    try {
      merge_chrome_trace(contents[i], merged[i], &trace);
    } catch (const Error& error) {  // what was gathered is kept
      std::fprintf(stderr, "fleetrun trace: not merged: %s\n", error.what());
      whole = false;
    }
  }
  size_t activities = 0;
  for (const RankTrace& rank : trace.ranks) activities += rank.records.size();
  write_trace(trace, path);
  std::printf("%s: %s, %zu activities; open it at ui.perfetto.dev\n", path.c_str(),
              counted(static_cast<int>(trace.ranks.size()), "rank").c_str(), activities);
  return whole ? 0 : 1;
}

}  // namespace

FLEET_COMMAND(trace) {
  def.syntax = {.program = "fleetrun trace",
                .words = "[JOB]",
                .about =
                    "record some steps of every rank of a job, for Perfetto\n"
                    "Run it on a node of the job. The ranks of all nodes record their next "
                    "steps:\noperations, input, collectives. One file for ui.perfetto.dev shows "
                    "them and the\nevents of the launchers on one time axis.\nJOB: its --job_id or "
                    "the pid of its fleetrun here; optional if only one job runs\nhere. Exit code "
                    "1: the file is incomplete, and a line names the missing parts.",
                .most = 1};
  def.syntax.options
      .integer({.key = "steps", .value = "N", .optional = true}, 20, 1, 100'000,
               "steps that each rank records (default: 20)")
      .text({.key = "output", .aliases = {"o"}, .value = "FILE", .optional = true}, "",
            "file to write (default: JOB.perfetto-trace in the current folder)")
      .number({.key = "timeout", .value = "SECONDS", .optional = true}, 120, 1, 86'400,
              "seconds to wait for the steps; then the steps recorded so far are written (default: "
              "120)")
      .texts({.key = "merge", .value = "[RANK=]FILE", .optional = true, .repeats = true},
             "add a trace that another profiler, such as torch.profiler, has exported as JSON");
  def.run = run_trace;
}

}  // namespace fleet
