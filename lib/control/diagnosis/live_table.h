// The current activity of every rank of a job, from the step reports of all nodes: the answer to
// fleetrun top. Pure: the time is an argument. Not thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>

#include "transport/control_messages.h"

namespace fleet {

// Two reports of one rank between which its rates are measured: the newest one, and one that is
// older by at least `gap`, and at most twice that if reports come often.
template <typename Report>
class ReportWindow {
 public:
  // `since`: from the report that begins the gap to this one.
  void add(const Report& report, int64_t since, int64_t gap) {
    if (!any_) {
      any_ = true;
      first_ = middle_ = report;
    } else if (since >= gap) {
      first_ = std::exchange(middle_, report);
    }
    last_ = report;
  }
  void restart() { any_ = false; }
  bool any() const { return any_; }
  const Report& first() const { return first_; }
  const Report& middle() const { return middle_; }
  const Report& last() const { return last_; }

 private:
  bool any_ = false;
  Report first_, middle_, last_;
};

// Estimates when training ends, from the steps of the last minutes: with the evaluations and saves
// between them.
class TimeLeft {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // The last step that was finished at `now`. A lower one means a restart, which resets the state.
  void update(int64_t step, Time now);
  // Seconds from the last update; nullopt if `target` is 0 (unknown), or before two steps.
  std::optional<double> seconds(int64_t target) const;

 private:
  struct Point {
    Time at;
    int64_t step;
  };
  static constexpr std::chrono::seconds kSpacing{10};
  static constexpr size_t kPoints = 32;  // five minutes

  std::deque<Point> points_;  // kSpacing apart, except the last
};

class LiveTable {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // The most ranks of one report: it must fit a message.
  static constexpr int kMaxRanks = 8192;

  // The ranks start (again): forgets their earlier reports.
  void begin(Time now);
  // `reports`: one node's, with node_rank.
  void update(const StepReport& reports, Time now);
  // Without what the job itself knows: job_id, generation, nnodes, world_size, bottleneck.
  LiveReport report(Time now) const;

 private:
  struct Rank {
    ReportWindow<RankSteps> steps;
    ReportWindow<RankUsage> usage;
    ReportWindow<wire::ServerReport> server;
  };
  using Key = std::pair<bool, int>;  // trainers before servers, by rank

  static wire::LiveRank live_rank(const Key& key, const Rank& rank);
  void mark_slowest(LiveReport* report) const;
  int64_t highest_step() const;

  std::map<Key, Rank> ranks_;
  Time began_{};
  int64_t step_ = 0, target_ = 0;
  TimeLeft time_left_;
};

}  // namespace fleet
