// Second half of making a Plan: where each variable lies.
#pragma once

#include "exec/plan.h"

namespace fleet {

inline constexpr size_t kAlignment = 64;  // of every variable, in bytes
inline size_t aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// Sets region and offset of plan.vars. Temporaries share memory: two of them overlap only where, in
// every run, all operations that touch one have ended before any that touches the other starts
// (StreamOrder). Inputs of operations that want them side by side lie so (adjacency.h), in memory
// of the operation's group. keep: never shared.
void assign_memory(Plan& plan, const std::vector<VarId>& keep);

}  // namespace fleet
