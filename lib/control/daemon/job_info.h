// The state of a job on one node: what ls and status show, and what fleetd reports.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "node/job_record.h"

namespace fleet {

using wire::JobInfo;

const char* name_of(JobInfo::Phase phase);

// The part of a run that knows its state or outcome best.
const JobInfo& authoritative_part(const std::vector<JobInfo>& parts);

// Whether both are nodes of one run of a job.
bool same_run(const JobInfo& a, const JobInfo& b);

// For people, in several lines; "" for a success, a requested stop and an empty verdict.
std::string failure_text(const wire::JobVerdict& outcome);
// Whether the job may still run on other nodes.
bool node_lost(const wire::JobVerdict& outcome);

// State of this node's part: "running", "succeeded", "stopped (SIGTERM)", "failed (5)", "killed".
std::string state_of(const JobInfo& job);

// The runs of these jobs, each with its parts, ordered by the first part of each.
std::vector<std::vector<const JobInfo*>> runs_of(const std::vector<JobInfo>& jobs);
// Like authoritative_part(). `parts` is not empty.
const JobInfo& most_informed(const std::vector<const JobInfo*>& parts);

// The reader of a table: a terminal of so many columns, or, with 0, any file or program.
struct JobsView {
  size_t columns = 0;
  bool colors = false;
};

// The jobs of all nodes as one table, one line per run, with times in local time. A terminal gets
// the columns that fit, and the reason of a failure in a line below its run. Pure.
// `now`: seconds since 1970.
std::string jobs_table(const std::vector<JobInfo>& jobs, double now, const JobsView& view = {});
// Keeps only the last `ended` ended runs, and all others; returns how many it removed.
size_t trim_ended_runs(size_t ended, std::vector<JobInfo>* jobs);
// All details of one job, from each of its nodes.
std::string job_status(const std::vector<JobInfo>& parts, double now);
// All jobs for programs: an array with one object per job and node.
std::string jobs_json(const std::vector<JobInfo>& jobs);

// This user's jobs on this node that run without fleetd, from their job records: running ones, and
// ended ones that are still recorded; oldest first, ended ones before others.
// Throws kUsage if the runtime folder belongs to another user.
std::vector<JobInfo> local_jobs();

// The parts of one run among `jobs`, selected by job id, else by the pid of a process, else by log
// folder, else by working folder. Running jobs take precedence over ended ones, later ones over
// earlier ones. Empty if no run matches; throws kUsage if several run.
std::vector<JobInfo> find_run(const std::string& word, const std::vector<JobInfo>& jobs);

// The current state of the job with this record; nullopt if it is forgotten.
std::optional<JobInfo> refresh(const JobRecord& job);

}  // namespace fleet
