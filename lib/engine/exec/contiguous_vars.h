// Variables that operations require to be adjacent in memory.
#pragma once

#include <vector>

#include "exec/plan.h"

namespace fleet {

// Variables that are adjacent in memory, in this order.
struct ContiguousVars {
  std::vector<VarId> vars;
  GroupId group = 0;  // of the first operation that requires the chain; owns the memory
};

// The chains of all operations with contiguous inputs or outputs (Collective), in the order of
// their first operations. A variable may be in several such operations if it has the same
// neighbours in all of them: one operation may take a part of another's chain, or continue it.
// kInternal names a variable for which two operations require different neighbours.
std::vector<ContiguousVars> find_contiguous_vars(const Plan& plan);

}  // namespace fleet
