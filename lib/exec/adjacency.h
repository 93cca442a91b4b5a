// Variables that operations want side by side in memory.
#pragma once

#include <vector>

#include "exec/plan.h"

namespace fleet {

// Variables that lie one behind the other, in this order.
struct Chain {
  std::vector<VarId> vars;
  GroupId group = 0;  // of the first operation that wants them so: whose memory they lie in
};

// The chains of all operations with OpDef::contiguous_inputs, in the order of their first
// operations. A variable may be an input of several such operations as long as it has the same
// neighbours in all of them: one may take a part of another's, or continue it. kInternal naming a
// variable that two operations want between others.
std::vector<Chain> find_chains(const Plan& plan);

}  // namespace fleet
