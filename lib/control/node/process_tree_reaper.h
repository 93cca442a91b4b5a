// Kills all descendants of this process and waits until none is left.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "transport/event_loop.h"

namespace fleet {

// The owner is a subreaper and reaps its children on SIGCHLD, then calls on_children_changed(),
// which finds processes forked during the kill. Not thread-safe.
class ProcessTreeReaper {
 public:
  // `on_gone` is called once per start(), with a line for each process that could not be killed
  // within some seconds (for example because it waits for a dead file server), so that it cannot
  // keep the job from ending.
  ProcessTreeReaper(EventLoop& loop, std::vector<pid_t> except,
                    std::function<void(std::string stuck)> on_gone);
  // Neither kills nor waits for this process from now on.
  void exclude(pid_t pid) { except_.push_back(pid); }
  void start();
  void on_children_changed();

 private:
  void step();
  void finish(std::string stuck);

  std::vector<pid_t> except_;
  std::function<void(std::string)> on_gone_;
  LoopTimer limit_;
  bool running_ = false;
};

}  // namespace fleet
