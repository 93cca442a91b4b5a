// The plan fingerprint that ranks compare before they work together.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "store/store.h"

namespace fleet {

// Operations of one rank in a group or with one other rank: one line each, in issue order.
// Ranks that can work together have equal lines.
struct CollectiveSequence {
  std::vector<int> ranks;  // of the job, in the order of the group; of a pair, the lower rank first
  std::vector<std::string> operations;
  uint64_t hash() const;
};

// Keys: "ranks 0 1 2" for the operations of a group, "pair 0 1" for the messages between two ranks.
using CollectiveSequences = std::map<std::string, CollectiveSequence>;

// Publishes this rank's sequences and compares each with those of the other ranks in it.
// Collective: every rank of the job calls it once per Store. kUsage names the rank that differs,
// the group or pair, and the first differing operation; kTimeout if a rank does not arrive.
void compare_collective_sequences(const CollectiveSequences& mine, int rank, int world,
                                  Store& store, std::chrono::milliseconds timeout);

}  // namespace fleet
