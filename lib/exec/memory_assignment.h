// Second half of making a Plan: where each variable lies.
#pragma once

#include "exec/plan.h"

namespace fleet {

inline constexpr size_t kAlignment = 64;  // of every variable, in bytes
inline size_t aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// Sets region and offset of plan.vars. Temporaries share one arena: two of them overlap only if no
// operation, in the order of the program, lies between both first writes and last reads. keep:
// never shared.
void assign_memory(Plan& plan, const std::vector<VarId>& keep);

}  // namespace fleet
