// Checks of the environment's communication settings, above all NCCL's.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launch/tools/doctor/facts.h"

namespace fleet {

// The variables that NCCL 2.28.9 reads, sorted.
const std::vector<std::string>& nccl_variables();

// Reports unknown names with the nearest known one, and names that PyTorch has renamed.
Findings check_spelling(const NodeFacts& node);
// Reports values that NCCL would ignore.
Findings check_values(const NodeFacts& node);
// Reports settings for debugging, and settings that contradict each other or this node.
Findings check_sense(const NodeFacts& node);

}  // namespace fleet
