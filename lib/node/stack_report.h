// What all ranks of a job do, for those who ask: `fleetrun stacks`.
#pragma once

#include <string>

#include "base/command_line.h"
#include "rendezvous/types.h"

namespace fleet {

// An array of clusters, the largest first, then who has sent nothing.
std::string stack_report_json(const StackReport& report);
// kUsage where the text is no such report.
StackReport read_stack_report(const std::string& json);
// As in the verdict of a hang: alike ranks together, the odd one named.
std::string stack_report_text(const StackReport& report);

// `fleetrun stacks [JOB] [--format text|json]`.
Command stacks_command();

}  // namespace fleet
