// Stacks of all ranks of a hung job, with equal ones grouped, and what they tell. Pure. Not
// thread-safe.
#pragma once

#include <chrono>
#include <optional>
#include <set>
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
// Whether it is stopped (by a signal).
bool is_stopped(const RankStack& stack);

// "  ranks 0-2,5: sleeping in futex_wait\n    #0 ...", of at most `most` clusters.
std::string stacks_text(const Stacks& clusters, int most = 16);

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

// The rank to look at in a hang: a stopped one, else one that has printed an exception, else the
// one that the others wait for in a collective, else one that has ended before most others, else
// the one with another stack, else the first that was noticed. *why: in words.
// `clusters` and `waits` come from the collection.
RankExit find_suspect(const StackCollection& collection, const Stacks& clusters,
                      const std::vector<CollectiveWait>& waits, std::string* why);

// For `fleetrun stacks`, for programs: an array of clusters, the largest first, then the nodes that
// sent nothing.
std::string stack_report_json(const StackReport& report);
// And for people, as in the verdict of a hang: equal stacks grouped, the odd rank named.
std::string stack_report_text(const StackReport& report);

}  // namespace fleet
