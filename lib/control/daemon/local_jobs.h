// This user's jobs on this node that run without fleetd, from their job records.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "daemon/job_info.h"

namespace fleet {

// Running jobs and ended jobs that are still recorded; oldest first, ended ones before others.
// Throws kUsage if the runtime folder belongs to another user.
std::vector<JobInfo> local_jobs();

// The parts of one run among `jobs`, selected by job id, else by the pid of a fleetrun, else by log
// folder, else by working folder. Running jobs take precedence over ended ones, later ones over
// earlier ones. Empty if there is none; throws kUsage if several run.
std::vector<JobInfo> find_run(const std::string& word, const std::vector<JobInfo>& jobs);

// The current state of the same job; nullopt if it is forgotten.
std::optional<JobInfo> refresh(const JobInfo& job);

}  // namespace fleet
