// The checks before the ranks of a job start: --preflight.
#pragma once

#include <string>

#include "launch/planning/launch_plan.h"
#include "launch/tools/doctor/checks.h"
#include "launch/tools/doctor/facts.h"
#include "rendezvous/types.h"

namespace fleet {

// Every node calls it. It listens on the node's first port of the assignment (held), tries every
// other node and sends its report to node 0, which returns one report on all nodes to everyone.
// Blocks. A single node uses no network. Throws the store's errors.
JobReport exchange_reports(const LaunchPlan& plan, const NodeFacts& facts,
                           const Assignment& assignment);

// The facts about this node for the checks. Call it before threads exist.
NodeFacts gather_facts(const LaunchPlan& plan);

// Runs the checks with the other nodes of the job, as exchange_reports() does, and logs the
// warnings. Returns "" if nothing failed, else the failures as text for people.
std::string preflight(const LaunchPlan& plan, const NodeFacts& facts, const Assignment& assignment);

// Logs a warning for each misspelt or meaningless NCCL setting, at every start.
void warn_of_settings();

}  // namespace fleet
