// Distinguishes a second stop request from a copy of the first one. Pure: the time is an argument.
#pragma once

#include <signal.h>

#include <chrono>

#include "node/signal_copies.h"

namespace fleet {

// Not thread-safe.
//
// A batch system that cancels a job, or a cluster that evicts it, signals the launchers of all its
// nodes, within a moment or over minutes. Meanwhile each node also receives the stop from the node
// that was signalled first. All of that is one request. Only SIGINT comes from a person: on another
// node it is a second request, unless it arrives at the same time.
class StopSignals {
 public:
  using Time = std::chrono::steady_clock::time_point;
  enum class Meaning {
    kStop,  // stop the job
    kCopy,  // this node already knows this stop
    kKill,  // the job is being stopped: kill it now
  };

  // Copies of a SIGINT reach a node at most this long after the stop.
  static constexpr std::chrono::milliseconds kFanOut{400};

  // A stop order: the launcher of some node received `signal`.
  void on_stop_command(int signal, Time now) {
    if (commanded_ != 0) return;
    commanded_ = signal;
    commanded_at_ = now;
  }
  // The launcher of this node received `signal`.
  Meaning on_signal(int signal, Time now) {
    if (own_ != 0) return Meaning::kKill;
    own_ = signal;
    own_at_ = now;
    if (commanded_ == 0) return Meaning::kStop;
    const bool in_time = signal != SIGINT || now - commanded_at_ <= kFanOut;
    return signal == commanded_ && in_time ? Meaning::kCopy : Meaning::kKill;
  }

  // A signal of others has ended a rank of this node.
  void on_rank_struck(int signal, Time now) {
    struck_ = signal;
    struck_at_ = now;
  }

  int own() const { return own_; }         // the first signal to this launcher; 0: none
  Time own_at() const { return own_at_; }  // when it arrived
  bool commanded() const { return commanded_ != 0; }
  bool any() const { return own_ != 0 || commanded_ != 0; }
  // Whether the first signal to this launcher has ended a rank just before: pkill -f reaches both.
  bool has_struck_a_rank() const {
    return own_ != 0 && struck_ == own_ && own_at_ - struck_at_ < SignalCopies::kWindow;
  }

 private:
  int own_ = 0, commanded_ = 0;
  Time own_at_{}, commanded_at_{};
  int struck_ = 0;  // the signal that ended the last such rank
  Time struck_at_{};
};

}  // namespace fleet
