// The signals of users to a launcher: sent to it, to its guardian or its watchdog, or as bytes in
// the control pipe of a remote starter.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <set>
#include <vector>

#include "base/file.h"
#include "node/signal_copies.h"
#include "transport/control_messages.h"
#include "transport/event_loop.h"
#include "transport/loop_descriptor.h"

namespace fleet {

// Not thread-safe: everything happens in the loop's thread.
class LauncherSignals {
 public:
  using Time = std::chrono::steady_clock::time_point;
  struct Handlers {
    // A request to stop the job, not a copy of one. It comes kDelivery (SignalCopies) after it was
    // `received`.
    std::function<void(int signal, Time received)> on_stop;
    std::function<void()> on_suspend;                // Ctrl-Z
    std::function<void(int signal)> on_job_signal;   // for the ranks of all nodes
    std::function<void(int signal)> on_node_signal;  // for the ranks of this node
    std::function<void()> on_starter_lost;           // the end of the control pipe
    std::function<void()> on_child;                  // SIGCHLD
  };

  // stop_signals: those that stop the job. SIGUSR1 and SIGUSR2 are for the ranks unless listed.
  LauncherSignals(EventLoop& loop, std::vector<int> stop_signals, Handlers handlers);

  // Handles the signals that this process does not ignore. Throws kIo.
  void start();
  // The guardian or its watchdog has received a signal of a user.
  void on_passed(const wire::SignalReceived& received);
  // Takes the control pipe's end. Throws kIo.
  void listen_to(UniqueFd control_pipe);

 private:
  bool stops(int signal) const;
  void on_signal(int signal, SignalCopies::Receiver receiver);
  void report_stop(int signal, Time received);
  void read_control_pipe();
  void on_control_signal(int signal);

  EventLoop& loop_;
  const std::vector<int> stop_signals_;
  const Handlers handlers_;
  LoopSignals signals_;
  std::set<int> handled_;
  SignalCopies copies_;
  std::optional<LoopDescriptor> control_pipe_;
  char bytes_[16];
};

}  // namespace fleet
