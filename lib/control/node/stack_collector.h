// Collects the stacks of this node's ranks: the native ones by eu-stack or gdb, those of Python by
// py-spy or gdb.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "node/python_stack.h"
#include "rendezvous/types.h"
#include "transport/event_loop.h"
#include "transport/loop_descriptor.h"

namespace fleet {

// The owner reaps its children. Not thread-safe.
class StackCollector {
 public:
  struct Target {
    int local_rank = 0;
    pid_t pid = -1;
    std::string file;  // receives the debugger's output, all threads
  };

  // At most `at_once` debuggers run; 0: one per core. More would all finish late. Those for Python
  // follow when all native stacks are there.
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
  size_t started_ = 0;      // of them
  std::function<void(Stacks)> on_done_;
};

}  // namespace fleet
