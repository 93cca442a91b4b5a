// Decides which nodes continue a job that was partitioned. Pure.
#pragma once

#include <chrono>
#include <set>

namespace fleet {

// Whether these nodes, given by their ranks in the last generation of `nodes` nodes, may continue
// without the rest: more than half, or exactly half including node 0, which hosted it. Two such
// sets always share a node, so no two parts of a partitioned job can both continue.
inline bool has_quorum(int nodes, const std::set<int>& present) {
  const int here = static_cast<int>(present.size());
  return 2 * here > nodes || (2 * here == nodes && present.contains(0));
}

// How much later than one node another one may notice the loss of their host: the host sends to
// each of them at least every third of the silence limit.
inline std::chrono::milliseconds notice_time(std::chrono::milliseconds max_silence) {
  return max_silence / 2 + std::chrono::milliseconds(1'000);
}

}  // namespace fleet
