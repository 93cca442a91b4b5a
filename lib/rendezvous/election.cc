#include "rendezvous/election.h"

namespace fleet {

bool has_quorum(int nodes, const std::set<int>& present) {
  const int here = static_cast<int>(present.size());
  return 2 * here > nodes || (2 * here == nodes && present.contains(0));
}

}  // namespace fleet
