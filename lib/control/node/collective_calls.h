// A rank's collective log as a message to the host.
#pragma once

#include <cstdint>

#include "observe/collective_log_reader.h"
#include "rendezvous/types.h"

namespace fleet {

// The calls around the last one that it has entered, of each group. rank: of the job; now_ns:
// CLOCK_MONOTONIC. The caller sets local_rank and state.
RankCollectives calls_of(const CollectiveSnapshot& snapshot, int rank, int64_t now_ns);

// As in /proc/PID/stat, of the process that writes the log; 'X' if it is gone. rank_state: that of
// the rank's own process, which the answer is if the pid means something else here.
char writer_state(const CollectiveSnapshot& snapshot, char rank_state);

}  // namespace fleet
