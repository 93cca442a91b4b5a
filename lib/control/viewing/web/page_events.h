// The events of a page, as the data of Server-Sent Events: JSON of one line. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "daemon/job_info.h"
#include "transport/control_messages.h"

namespace fleet {

struct WatchedLog {
  int rank = 0;
  bool server = false;
};

// How a job has ended.
struct JobOutcome {
  std::string state;                      // "succeeded"
  std::string text = {};                  // for people; "" for a success
  std::optional<WatchedLog> failed = {};  // the rank that caused it
  std::optional<int> lost_node = {};      // its node rank
};
JobOutcome outcome_of(const JobInfo& job);

// {"state", "text", "failed": {"role", "rank"} or null, "lost_node": 1 or null}.
std::string outcome_event(const JobOutcome& outcome);

// {"interval": seconds, "points": [{"time", "step", "loss", "accuracy", "evaluation_accuracy",
// "rate", "step_ms", "gpu", "gpu_memory", "ranks": [[own ms, input, peers, cpu, gpu], ...]}, ...]}:
// shares in percent; unknown values are null, and so are ranks that a point leaves out. The ranks
// are the trainers by number. `now`: seconds since 1970 at the history's now_ms.
std::string history_event(const wire::LiveHistory& history, double now);

// {"host", "jobs": [...]}, one line each for a job of a fleetd.
std::string jobs_event(const std::string& host, const std::vector<JobInfo>& jobs);

// Of the list of jobs, where a few points are enough.
struct JobCurve {
  int number = 0;
  const wire::LiveHistory* history = nullptr;
};
// {"jobs": [{"number", "points": [[seconds since the start, loss, accuracy, rate, gpu], ...]}]}:
// at most kListPoints for each job, the last one among them.
inline constexpr int kListPoints = 60;
std::string curves_event(const std::vector<JobCurve>& curves);

}  // namespace fleet
