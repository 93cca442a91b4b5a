// Stacks of all ranks of a hung job, with equal ones grouped.
#pragma once

#include <string>
#include <vector>

#include "rendezvous/types.h"

namespace fleet {

// Function names, innermost first, of the first thread in the output of eu-stack or gdb for process
// `pid`; at most 24.
std::vector<std::string> frames_of(const std::string& printed, int pid);

struct StackCluster {
  RankStack sample;
  std::vector<RankStack> members;  // by rank
};
// Ranks with the same state and the same frames, the largest cluster first.
std::vector<StackCluster> cluster_stacks(const Stacks& all);

// The rank that differs from the others: a stopped one, or the only one of the smallest cluster if
// most are in another; nullptr if none stands out.
const RankStack* find_outlier(const std::vector<StackCluster>& clusters);

// "  ranks 0-2,5: sleeping in futex_wait\n    #0 ...", of at most `most` clusters.
std::string stacks_text(const std::vector<StackCluster>& clusters, size_t most = 16);

}  // namespace fleet
