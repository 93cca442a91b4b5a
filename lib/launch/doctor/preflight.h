// The checks before the ranks of a job start: --preflight.
#pragma once

#include <memory>
#include <string>

#include "launch/doctor/facts.h"
#include "launch/plan.h"

namespace fleet {

// This node as the checks see it. Before threads exist.
NodeFacts gather_facts(const LaunchPlan& plan);

// Meets the other nodes of the job as exchange_reports() does, says the warnings, and returns ""
// where nothing has failed, else what has, for people.
std::string preflight(const LaunchPlan& plan, const NodeFacts& facts, const Assignment& assignment);

// Misspelt and meaningless settings of NCCL, at every start: a line each, as a warning.
void warn_of_settings();

}  // namespace fleet
