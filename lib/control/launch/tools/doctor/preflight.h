// The checks before the ranks of a job start: --preflight.
#pragma once

#include <memory>
#include <string>

#include "launch/planning/launch_plan.h"
#include "launch/tools/doctor/facts.h"

namespace fleet {

// The facts about this node for the checks. Call it before threads exist.
NodeFacts gather_facts(const LaunchPlan& plan);

// Runs the checks with the other nodes of the job, as exchange_reports() does, and logs the
// warnings. Returns "" if nothing failed, else the failures as text for people.
std::string preflight(const LaunchPlan& plan, const NodeFacts& facts, const Assignment& assignment);

// Logs a warning for each misspelt or meaningless NCCL setting, at every start.
void warn_of_settings();

}  // namespace fleet
