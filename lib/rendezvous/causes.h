// Which of the failures that come together is the cause, and which only follow from it. Pure: the
// time is an argument. Not thread-safe.
//
// A rank that dies takes others with it within a millisecond, on every node, and their reports race
// to the host. So the host collects for a moment, then takes the one that was first by the clock of
// its node (ClockOffset), as far as that can be told.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "rendezvous/types.h"

namespace fleet {

struct CauseTimes {
  std::chrono::milliseconds settle{250};  // what comes later than this after the first is no cause
  std::chrono::milliseconds echo{500};    // the same after a rank that says it only lost another
  // A guardian may notice an end so much later than it happened.
  std::chrono::milliseconds notice{10};
  // A node that vanishes is heard of up to so much later than ranks that lost it.
  std::chrono::milliseconds vanish{100};
};

// Of a job on one node: one guardian tells of all ends, in their order, but for the closest.
CauseTimes within_a_node(CauseTimes times);

class Causes {
 public:
  using Time = std::chrono::steady_clock::time_point;
  struct Cause {
    std::optional<RankExit> exit;  // else a lost node
    int node_rank = -1;
    std::string how;  // what happened to the node: "its fleetrun vanished"
  };

  explicit Causes(CauseTimes times = {}) : times_(times) {}
  // A rank failed, on its own account. Its at_ns is on this clock, or at_error_ns < 0.
  void failed(RankExit exit, Time now);
  // Nothing was heard of the node since; `how` for the message.
  void node_lost(int node_rank, std::string how, Time since);
  // A launcher was told to stop its ranks, at this time of this clock, so far off (< 0: not known):
  // what has not failed before that for certain follows from it.
  void stopped(int64_t at_ns, int64_t error_ns);
  // Failures that are kept: those that may be the first.
  size_t kept() const { return exits_.size(); }
  bool any() const { return !exits_.empty() || !lost_.empty(); }
  bool any_lost() const { return !lost_.empty(); }
  // When to decide: nothing more is waited for then. Time::max() where there is no cause.
  Time due() const { return due_; }
  // The cause among what has come, which is forgotten. any() must be true.
  Cause decide();
  void clear();

 private:
  struct Failed {
    RankExit exit;
    int64_t at_ns, error_ns;
  };
  const Failed* first_exit() const;

  CauseTimes times_;
  std::vector<Failed> exits_;
  // When one of them, that is no echo, had ended for certain: what ended later is not kept.
  int64_t ended_by_ = INT64_MAX;
  struct Lost {
    int node_rank;
    std::string how;
    int64_t since_ns;
  };
  std::vector<Lost> lost_;
  Time due_ = Time::max();
};

}  // namespace fleet
