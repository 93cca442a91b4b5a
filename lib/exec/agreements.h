// What ranks must agree on before they work together, and its comparison.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "store/store.h"

namespace fleet {

// What one rank does in a group, or with another rank: a line an operation, in the order in which
// the rank issues them. Lines of ranks that fit are equal.
struct Agreement {
  std::vector<int> ranks;  // of the job, in the order of the group; two of a pair, the lower first
  std::vector<std::string> operations;
  uint64_t hash() const;
};

// By "ranks 0 1 2" for what the ranks of a group do together and "pair 0 1" for what two ranks send
// each other.
using Agreements = std::map<std::string, Agreement>;

// Publishes those of this rank and compares each with those of the other ranks in it. Collective:
// every rank of the job calls it, once with one Store. kUsage naming the rank that differs, the
// group or pair, and the first operation that is not the same; kTimeout where a rank does not come.
void compare_agreements(const Agreements& mine, int rank, int world, Store& store,
                        std::chrono::milliseconds timeout);

}  // namespace fleet
