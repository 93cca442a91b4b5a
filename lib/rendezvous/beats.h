// How the beats of a job depend on its size.
#pragma once

#include "rendezvous/job_state.h"

namespace fleet {

// `times` as asked for, slower where so many nodes would cost their host too much: at most 8,000
// beats a second, three within the silence. A job of kLargeJob nodes or more is looked at seldom
// while it comes together (JobTimes::early_silence).
JobTimes beats_for(int nnodes, JobTimes times);

inline constexpr int kLargeJob = 1000;  // nodes

}  // namespace fleet
