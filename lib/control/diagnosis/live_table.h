// What every rank of a job does now, from the step reports of all nodes: the answer to fleetrun
// top. Pure: the time is an argument. Not thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "diagnosis/time_left.h"
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

class LiveTable {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // The most ranks of one report: it must fit a message.
  static constexpr int kMaxRanks = 8192;

  // The ranks start (again): forgets their earlier reports.
  void begin(Time now);
  // `reports`: of one node, with node_rank.
  void update(const StepReport& reports, Time now);
  // Without what the job itself knows: job_id, generation, nnodes, world_size, bottleneck.
  LiveReport report(Time now) const;

 private:
  struct Rank {
    ReportWindow<RankSteps> steps;
    ReportWindow<RankUsage> usage;
  };
  using Key = std::pair<bool, int>;  // trainers before servers, by rank

  static wire::LiveRank live_rank(const Key& key, const Rank& rank);
  void mark_slowest(LiveReport* report) const;

  std::map<Key, Rank> ranks_;
  Time began_{};
  int64_t step_ = 0, target_ = 0;
  TimeLeft time_left_;
};

}  // namespace fleet
