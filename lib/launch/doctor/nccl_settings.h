// The environment's settings for communication, NCCL's above all: spelling and sense.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launch/doctor/facts.h"
#include "launch/doctor/finding.h"

namespace fleet {

// The variables that NCCL 2.28.9 reads, in order.
const std::vector<std::string>& nccl_variables();

// Names: unknown ones with the nearest known, old ones with what took their place.
Findings check_spelling(const NodeFacts& node);
// Values that NCCL would ignore.
Findings check_values(const NodeFacts& node);
// Settings that are for debugging, or contradict each other or this node.
Findings check_sense(const NodeFacts& node);
// What each setting does, as findings without complaint.
Findings explain_settings(const NodeFacts& node);

}  // namespace fleet
