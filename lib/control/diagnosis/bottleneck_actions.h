// Remedies for the causes of slow steps (bottleneck.h), as lines for users. Pure. Thread-safe.
#pragma once

#include <string>

#include "diagnosis/rank_times.h"

namespace fleet {

// A rank that has no core for this part of its step is delayed much.
inline constexpr double kMuchDelay = 0.1;

// For a rank that waits for its batches. full: its data threads wait for its cores.
std::string input_action(const RankTimes& rank, bool full = false);
// nnodes: the job's.
std::string communication_action(const RankTimes& rank, int nnodes);
// For a slow rank. usual: a rank that is not slow. In nanoseconds a step: usual_input, what ranks
// usually wait for input; excess, how much longer this one takes.
std::string straggler_action(const RankTimes& rank, const RankTimes& usual, double usual_input,
                             double excess);
// For ranks without enough cores. rank: a usual one.
std::string host_action(const RankTimes& rank);

// "31 %"
std::string percent_text(double share);

}  // namespace fleet
