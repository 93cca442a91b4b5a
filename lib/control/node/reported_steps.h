// Step reports of a program: an object {"step": 100, "loss": 0.1, ...}, on its standard
// output or in a file (docs/how-to/report_steps.md). The result has the form that our engine keeps
// in shared memory, so readers need not distinguish the two.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "observe/rank_progress.h"

namespace fleet {

// The variable in which the launcher passes the file's path.
inline constexpr char kEnvStepsFile[] = "FLEET_STEPS_FILE";

struct ReportedStep {
  int64_t step = 0;   // counts from the start of the whole training
  int64_t steps = 0;  // at which training ends; 0: unknown
  std::optional<double> epoch = {};
  std::optional<double> samples = {};  // that the rank has processed so far
  std::optional<double> loss = {};     // NaN if the program reports null
  // Seconds a step, since the previous report.
  std::optional<double> batch_time = {}, data_time = {}, wait_time = {};
  std::vector<std::pair<std::string, double>> others = {};  // by name; NaN: null
};

// nullopt if it is not a report; `why` then says for which reason.
std::optional<ReportedStep> parse_reported_step(std::string_view object, std::string* why);

// Adds up the reports of one process. Pure: the time is an argument. Not thread-safe.
class ReportedSteps {
 public:
  // A step that is lower than the last one: training continues from there, and the time since the
  // last report does not count as a step.
  void add(const ReportedStep& report, int64_t at_ns);
  // nullopt before the first report.
  const std::optional<RankProgress>& progress() const { return progress_; }

 private:
  void add_times(const ReportedStep& report, double steps, double passed);

  std::optional<RankProgress> progress_;
  // Sums in nanoseconds, of which the totals have no more than the time that has passed.
  double time_ = 0, input_ = 0, waited_ = 0, exchange_ = 0, passed_ = 0;
  std::deque<double> recent_waits_;  // a step
  std::optional<double> samples_;    // from the last report that had them
};

}  // namespace fleet
