// The job that a command means: `fleetrun stacks JOB`, `fleetrun trace JOB`.
#pragma once

#include <string>

#include "node/job_record.h"

namespace fleet {

// The running job of this user on this node with this --job_id or pid of its fleetrun; "": the only
// one. kNotFound or kUsage, naming `command`, and the jobs that there are.
JobRecord running_job_called(const std::string& name, const std::string& command);

}  // namespace fleet
