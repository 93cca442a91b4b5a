// The times of a job in the rendezvous, by its size and by --heartbeat_timeout.
#pragma once

#include <chrono>

#include "diagnosis/root_cause.h"

namespace fleet {

struct JobTimes {
  std::chrono::milliseconds timeout{300'000};         // all nodes must join within this time
  std::chrono::milliseconds heartbeat_interval{500};  // nodes send heartbeats this often
  std::chrono::milliseconds max_silence{3'000};       // a node silent for this long is lost
  // While a large job forms, its host has thousands of nodes to answer. Until the job has run for
  // `startup_time`, these longer intervals apply. 0: no difference.
  std::chrono::milliseconds startup_heartbeat_interval{0}, startup_max_silence{0}, startup_time{0};
  std::chrono::milliseconds first_progress{2'000};  // first report of missing nodes to waiting ones
  std::chrono::milliseconds progress_every{10'000};  // interval of later reports
  RootCauseTimes root_cause = {};                    // how the root cause of failures is found
  std::chrono::milliseconds stacks{12'500};  // how long nodes may take to collect stacks, dumps
};

// Heartbeat interval and silence limit such that a lost node is noticed within `timeout`. The last
// heartbeat is at most one interval old when the node dies, and a reaction takes a moment.
std::chrono::milliseconds heartbeat_interval_for(std::chrono::milliseconds timeout);
std::chrono::milliseconds max_silence_for(std::chrono::milliseconds timeout);

// Returns `times`, slower if so many nodes would cost the host too much: at most 8,000 heartbeats a
// second, three within the silence limit. While a job of kLargeJob nodes or more forms, silence is
// checked less often (JobTimes::startup_max_silence).
JobTimes heartbeat_intervals_for(int nnodes, JobTimes times);

inline constexpr int kLargeJob = 1000;  // nodes

}  // namespace fleet
