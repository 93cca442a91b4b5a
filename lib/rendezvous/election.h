// Who goes on when nodes of a job have fallen apart. Pure.
#pragma once

#include <set>

namespace fleet {

// Whether these nodes, by their ranks in the last epoch of `nodes` nodes, may go on without the
// rest: more than half, or exactly half with node 0, which hosted it. Two such sets always have a
// node in common, so no two parts of a job that was cut apart can both go on.
bool has_quorum(int nodes, const std::set<int>& present);

}  // namespace fleet
