// How the ranks of a job get on, by what they say of their steps: how far the job has come, and
// which rank keeps the others waiting. Pure: the time is an argument. Not thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "rendezvous/types.h"

namespace fleet {

// Ranks that step together all take as long as the slowest, so they are compared by their own time:
// a step's less what the rank waited for others in it.
struct PaceRules {
  std::chrono::milliseconds window{10'000};  // own times are means over this long
  int64_t steps = 3;                         // and over so many steps at least
  double sigmas = 4;                         // so far above the median is slow
  double spread = 0.05;                      // one sigma is at least this share of the median
  double least = 0.2;                        // and slow is at least this share above it
  int windows = 2;                           // so often in a row before it is said
};

class Pace {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit Pace(PaceRules rules = {}) : rules_(rules) {}
  // The ranks start (again): what they said before is forgotten.
  void begin(Time now);
  // A line for the user for each rank that has become slow, or keeps up again. `reports`: of one
  // node, with node_rank; ranks that say nothing are not missed.
  std::vector<std::string> update(const std::vector<RankPace>& reports, Time now);

  // The furthest that a rank has come since begin(); -1: nobody has said.
  int64_t step() const { return step_; }

 private:
  struct Member {
    RankPace window_begin, last;
    int slow_for = 0;  // windows
    bool named = false;
  };
  std::vector<std::string> compare();

  PaceRules rules_;
  std::map<int, Member> members_;  // by global rank
  Time window_end_{};
  int64_t step_ = -1;
};

}  // namespace fleet
