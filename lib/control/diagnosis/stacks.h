// Stacks of all ranks of a hung job, with equal ones grouped.
#pragma once

#include <string>
#include <vector>

#include "transport/control_messages.h"

namespace fleet {

// Function names, innermost first, of the first thread in the output of eu-stack or gdb for process
// `pid`; at most 24.
std::vector<std::string> frames_of(const std::string& printed, int pid);

// Merges clusters of ranks with the same state and the same frames, Python's included; ranks in
// order, the largest cluster first. Each cluster of the result has ranks.
Stacks cluster_stacks(const Stacks& all);
int rank_count(const Stacks& stacks);

// The rank that differs from the others: a stopped one, or the only one of the smallest cluster if
// most are in another; nullptr if none stands out. `clusters`: as cluster_stacks() returns them.
const RankStack* find_outlier(const Stacks& clusters);
// Whether it is stopped (SIGSTOP).
bool is_stopped(const RankStack& stack);

// "  ranks 0-2,5: sleeping in futex_wait\n    #0 ...", of at most `most` clusters.
std::string stacks_text(const Stacks& clusters, int most = 16);

}  // namespace fleet
