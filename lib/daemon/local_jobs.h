// The jobs of this user on this node that were started without fleetd, as their records tell.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "daemon/job_info.h"

namespace fleet {

// Those that run, and those that have ended and are still known; oldest first, ended ones before
// others. kUsage if the runtime folder belongs to somebody else.
std::vector<JobInfo> local_jobs();

// The parts of one run among `jobs`: that of this job id; else that with a fleetrun of this pid;
// else that with this log folder or, failing that, working folder. One that runs comes before those
// that have ended, and a later one before an earlier one. Empty if there is none; kUsage if several
// run.
std::vector<JobInfo> run_called(const std::string& word, const std::vector<JobInfo>& jobs);

// The same job, as it is known now; nothing if it is not known any more.
std::optional<JobInfo> look_again(const JobInfo& job);

}  // namespace fleet
