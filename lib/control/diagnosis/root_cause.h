// Finds the root cause among failures that arrive together; the rest are its consequences. Pure:
// the time is an argument. Not thread-safe.
//
// A rank that dies takes others with it within a millisecond, on every node, and their reports race
// to the host. The host therefore collects reports for a moment, then picks a failure by its kind
// and time: of those that no other one certainly precedes (by the nodes' clocks, ClockOffset), a
// kill comes before an exit. A SIGKILL counts however late it was noticed.
#pragma once

#include <chrono>
#include <optional>
#include <vector>

#include "transport/control_messages.h"

namespace fleet {

struct RootCauseTimes {
  std::chrono::milliseconds window{
      250};  // a failure that arrives later than this after the first is not the cause
  std::chrono::milliseconds peer_lost_window{
      500};  // the same after a rank that only reports the loss of another
  // A guardian may notice an exit this much later than it happened.
  std::chrono::milliseconds notice_delay{10};
  // The loss of a node is noticed up to this much later than ranks that lost their connection to
  // it.
  std::chrono::milliseconds loss_delay{100};
};

// For a job on one node: one guardian reports all exits, in order except for the closest.
RootCauseTimes single_node_times(RootCauseTimes times);

class RootCauseAnalyzer {
 public:
  using Time = std::chrono::steady_clock::time_point;
  explicit RootCauseAnalyzer(RootCauseTimes times = {}) : times_(times) {}
  // A rank failed, and was not ended by fleetrun. Its at_ns is on this host's clock, or at_error_ns
  // is unset. steady: this moment on that clock; `now` may be on a clock that stands still at
  // times, like due().
  void on_rank_failed(RankExit exit, Time now, Time steady);
  // The node has been silent since then, on that clock. The first loss counts.
  void on_node_lost(int node_rank, Time since);
  // A launcher received a stop request at this time of this host's clock, within error_ns. A
  // failure that did not certainly happen before it follows from it.
  void on_stop(int64_t at_ns, int64_t error_ns);
  // Number of failures kept: those that may be the first.
  size_t kept() const { return exits_.size(); }
  bool any() const { return !exits_.empty() || lost_; }
  bool any_lost() const { return lost_.has_value(); }
  // When to decide: no further reports are awaited then. Time::max() if nothing has failed.
  Time due() const { return due_; }
  // Returns the root cause, nullopt for the lost node, and forgets all failures. any() must be
  // true.
  std::optional<RankExit> decide();

 private:
  struct Failed {
    RankExit exit;
    int64_t at_ns, error_ns;
  };
  const Failed* first_exit() const;
  void clear();

  RootCauseTimes times_;
  std::vector<Failed> exits_;
  // When one of them, except echoes, had certainly ended: exits after this time are not kept.
  int64_t ended_by_ = INT64_MAX;
  struct Lost {
    int node_rank;
    int64_t since_ns;
  };
  std::optional<Lost> lost_;
  Time due_ = Time::max();
};

}  // namespace fleet
