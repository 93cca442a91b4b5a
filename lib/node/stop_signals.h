// Tells a second request to stop from a copy of the first one. Pure: the time is an argument.
//
// A batch system that cancels a job, or a cluster that evicts it, signals the launchers of all its
// nodes within a moment, while each node already hears of the stop from the one that was signalled
// first. All of that is one request. A person who asks again is later.
#pragma once

#include <chrono>

namespace fleet {

// Not thread-safe.
class StopSignals {
 public:
  using Time = std::chrono::steady_clock::time_point;
  enum class Meaning {
    kStop,  // the job is to be stopped
    kCopy,  // of a stop that this node has heard of
    kKill,  // the job is being stopped: now it is to be killed
  };

  // Copies reach a node at most so long after it has heard of the stop.
  static constexpr std::chrono::milliseconds kFanOut{400};

  // This node hears that the launcher of some node got `signal`.
  void on_order(int signal, Time now);
  // The launcher of this node got `signal`.
  Meaning on_signal(int signal, Time now);

  int own() const { return own_; }          // the first signal to this launcher; 0: none
  int ordered() const { return ordered_; }  // that of the first order; 0: none
  bool any() const { return own_ != 0 || ordered_ != 0; }

 private:
  int own_ = 0, ordered_ = 0;
  Time ordered_at_{};
};

}  // namespace fleet
