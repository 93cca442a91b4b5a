// From a plan to an exit code: one node's part of a job.
#pragma once

#include <functional>
#include <string>

#include "launch/planning/launch_plan.h"

namespace fleet {

// Starts the guardian, joins the other nodes and runs the job; returns the exit code. `check` runs
// when the world is known, before ranks start: a text that it returns ends the job; may be empty.
// Throws Error for requests that the machine rejects. Call it from the main thread of a process
// without other threads.
int start_job(LaunchPlan* plan, std::function<std::string(const Assignment&)> check);

}  // namespace fleet
