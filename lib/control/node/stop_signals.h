// Distinguishes a second stop request from a copy of the first one. Pure: the time is an argument.
//
// A batch system that cancels a job, or a cluster that evicts it, signals the launchers of all its
// nodes within a moment. Meanwhile each node also receives the stop from the node that was
// signalled first. All of that is one request. A person's second request comes later.
#pragma once

#include <chrono>

namespace fleet {

// Not thread-safe.
class StopSignals {
 public:
  using Time = std::chrono::steady_clock::time_point;
  enum class Meaning {
    kStop,  // stop the job
    kCopy,  // of a stop that this node already knows
    kKill,  // the job is being stopped: kill it now
  };

  // Copies reach a node at most this long after the stop.
  static constexpr std::chrono::milliseconds kFanOut{400};

  // A stop order: the launcher of some node received `signal`.
  void on_stop_command(int signal, Time now);
  // The launcher of this node received `signal`.
  Meaning on_signal(int signal, Time now);

  int own() const { return own_; }              // the first signal to this launcher; 0: none
  int commanded() const { return commanded_; }  // the signal of the first order; 0: none
  bool any() const { return own_ != 0 || commanded_ != 0; }

 private:
  int own_ = 0, commanded_ = 0;
  Time commanded_at_{};
};

}  // namespace fleet
