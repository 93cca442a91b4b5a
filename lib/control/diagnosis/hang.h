// A hang, as the stacks of all nodes show it. Pure. Not thread-safe.
#pragma once

#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "transport/control_messages.h"

namespace fleet {

// A stack collection in progress, for a hang or on request.
struct StackCollection {
  std::chrono::steady_clock::time_point due;
  std::set<int> awaited = {};  // nodes
  Stacks stacks = {};
  std::optional<RankStall> hang = {};  // the first rank that was reported
  int node_rank = -1;                  // that rank's node

  // Ignores the stacks of a node that is not awaited. Returns whether these were the last.
  bool add(int node, Stacks of_node);
  // For those who asked; its size is limited.
  StackReport report() const;
};

// The rank to look at in a hang: a stopped one, else the one that the others wait for in a
// collective, else the one with another stack, else the first that was noticed. *why: in words.
// `clusters` and `waits`: of the collection.
RankExit find_suspect(const StackCollection& collection, const Stacks& clusters,
                      const std::vector<CollectiveWait>& waits, std::string* why);

}  // namespace fleet
