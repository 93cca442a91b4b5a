// Straggler detector: how far the job has come, and which rank delays the others, from the ranks'
// own step reports. Pure: the time is an argument. Not thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "transport/control_messages.h"

namespace fleet {

// Ranks that step together all take as long as the slowest. They are therefore compared by their
// own time: a step's time minus the time in which the rank waited for others.
class StragglerDetector {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // The ranks start (again): forgets their earlier reports.
  void begin(Time now);
  // Returns a line for the user for each rank that has become slow or keeps up again. `reports`:
  // one node's, with node_rank. Ranks without reports are ignored.
  std::vector<std::string> update(const StepReport& reports, Time now);

  // The highest step of a rank since begin(); nullopt: no report yet.
  std::optional<int64_t> step() const { return step_; }

 private:
  struct Member {
    RankSteps window_begin, last;
    int slow_for = 0;  // windows
    bool named = false;
  };
  std::vector<std::string> compare();

  std::map<int, Member> members_;  // by global rank
  Time window_end_{};
  std::optional<int64_t> step_;
};

}  // namespace fleet
