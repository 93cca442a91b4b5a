// Second half of building a Plan: assigns memory to each variable.
#pragma once

#include "exec/plan.h"

namespace fleet {

inline constexpr size_t kAlignment = 64;  // in bytes, for every variable
inline size_t aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// Sets region and offset in plan.vars. Temporaries share memory: two of them overlap only if, in
// every run, all operations that use one have ended before any that uses the other starts
// (StreamOrder). Inputs that operations require to be contiguous (contiguous_vars.h) lie in the
// memory of the operation's group. Variables in `keep` never share memory.
void assign_memory(Plan& plan, const std::vector<VarId>& keep);

}  // namespace fleet
