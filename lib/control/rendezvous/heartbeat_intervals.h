// Heartbeat intervals by job size.
#pragma once

#include "rendezvous/job_state.h"

namespace fleet {

// Returns `times`, slower if so many nodes would cost the host too much: at most 8,000 heartbeats a
// second, three within the silence limit. While a job of kLargeJob nodes or more forms, silence is
// checked less often (JobTimes::startup_max_silence).
JobTimes heartbeat_intervals_for(int nnodes, JobTimes times);

inline constexpr int kLargeJob = 1000;  // nodes

}  // namespace fleet
