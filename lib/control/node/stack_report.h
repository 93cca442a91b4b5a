// The stacks of all ranks of a job, on request: `fleetrun stacks`.
#pragma once

#include <string>

#include "rendezvous/types.h"

namespace fleet {

// An array of clusters, the largest first, then the nodes that sent nothing.
std::string stack_report_json(const StackReport& report);
// As in the verdict of a hang: equal stacks grouped, the odd rank named.
std::string stack_report_text(const StackReport& report);

}  // namespace fleet
