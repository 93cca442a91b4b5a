// The steps by which a Plan is built: layouts, then memory.
#pragma once

#include <vector>

#include "exec/plan.h"

namespace fleet {

// Fills plan.ops and the layouts in plan.vars from plan.program (verified).
// PlanOptions::initial_layouts are kept.
void assign_layouts(Plan& plan, const PlanOptions& options);

// Variables that are adjacent in memory, in this order.
struct ContiguousVars {
  std::vector<VarId> vars;
  GroupId group = 0;  // the first operation's that requires the chain; owns the memory
};

// The chains of all operations with contiguous inputs or outputs (Collective), in the order of
// their first operations. A variable may be in several such operations if it has the same
// neighbours in all of them: one operation may take a part of another's chain, or continue it.
// kInternal names a variable for which two operations require different neighbours.
std::vector<ContiguousVars> find_contiguous_vars(const Plan& plan);

inline constexpr size_t kAlignment = 64;  // in bytes, for every variable
inline size_t aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// Sets region and offset in plan.vars. Temporaries share memory: two of them overlap only if, in
// every run, all operations that use one have ended before any that uses the other starts
// (StreamOrder). Inputs that operations require to be contiguous (find_contiguous_vars()) are in
// the memory of the operation's group. Variables in `keep` never share memory.
void assign_memory(Plan& plan, const std::vector<VarId>& keep);

}  // namespace fleet
