// Collects the stacks of this node's ranks: the native ones by eu-stack or gdb, those of Python by
// py-spy or gdb.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "observe/collective_log_reader.h"
#include "rendezvous/types.h"
#include "transport/event_loop.h"
#include "transport/loop_descriptor.h"

namespace fleet {

// Whether the process is a Python interpreter, by its executable.
bool runs_python(pid_t pid);

struct PythonDebugger {
  enum Kind { kNone, kPySpy, kGdb };
  Kind kind = kNone;
  std::vector<std::string> command;  // prints the stacks; never stops the process for long
  std::string missing;               // kNone: what would show Python frames
};
// py-spy if it is on the PATH; else gdb, if it has the script of this interpreter
// (python3-dbg of Debian).
PythonDebugger find_python_debugger(pid_t pid);

// The output of a debugger: "train (/data/train.py:12)", innermost first, at most 24, of the
// main thread. If there is none, `missing` says why, in one line.
struct PythonFrames {
  std::vector<std::string> frames;
  std::string missing;
};
PythonFrames python_frames_of(PythonDebugger::Kind kind, const std::string& printed, pid_t pid);

// The owner reaps its children. Not thread-safe.
class StackCollector {
 public:
  struct Target {
    int local_rank = 0;
    pid_t pid = -1;
    std::string file;  // receives the debugger's output, all threads
  };

  // At most `at_once` debuggers run; 0: one per core. More would all finish late. Those for Python
  // follow when all native stacks have arrived.
  explicit StackCollector(EventLoop& loop, size_t at_once = 0);
  // Calls back once, with one cluster per target (by local_rank), stopped ones first. After
  // `limit`, it kills unfinished debuggers and calls back at the latest. Does nothing while an
  // earlier call is pending.
  void collect(const std::vector<Target>& targets, std::chrono::milliseconds limit,
               std::function<void(Stacks)> on_done);

 private:
  // A debugger that runs, or will.
  struct Run {
    std::string name;  // for messages
    std::vector<std::string> command;
    pid_t pid = -1;
    std::unique_ptr<LoopDescriptor> output;
    std::string printed, missing;
    char chunk[4096];
    bool done = false;
  };
  struct Job {
    Target target;
    char state = '?';  // before the debugger stops it
    std::string channel;
    Run native, python;
    PythonDebugger::Kind python_kind = PythonDebugger::kNone;
  };
  void prepare(const Target& target);
  void start_next();
  void start(Run* run);
  void read(Run* run);
  void end(Run* run);
  void finish();
  static StackCluster cluster_of(const Job& job);

  EventLoop& loop_;
  const size_t at_once_;
  LoopTimer limit_;
  std::vector<std::unique_ptr<Job>> jobs_;
  std::vector<Run*> runs_;  // in the order in which they start
  size_t started_ = 0;      // number of started runs
  std::function<void(Stacks)> on_done_;
};

// --- Of ranks of our engine: the collective log, which is read without stopping them ---

// The calls around the last one that it has entered, of each group. rank: global; now_ns:
// CLOCK_MONOTONIC. The caller sets local_rank and state.
RankCollectives calls_of(const CollectiveSnapshot& snapshot, int rank, int64_t now_ns);

// As in /proc/PID/stat, of the process that writes the log; 'X' if it is gone. rank_state: that of
// the rank's own process, which the answer is if the pid means something else here.
char writer_state(const CollectiveSnapshot& snapshot, char rank_state);

}  // namespace fleet
