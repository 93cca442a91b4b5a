// Ended jobs of this node: small files in the folder of the records of running jobs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "node/job_record.h"

namespace fleet {

// A JobInfo of this node: its record, how it ended, and when.

// For a job whose fleetrun was killed: the end according to its verdict, if it had one.
JobInfo end_of_killed(const JobRecord& record);

// Not synced to the disk. Throws kUsage or kIo if it cannot be written.
void save_ended_job(JobInfo job);

// Whether the end of this run is recorded already.
bool has_ended_record(const JobRecord& record);

// Oldest first. Throws kUsage if the folder belongs to another user.
std::vector<JobInfo> find_ended_jobs();

// The number of records to keep, and their age.
struct EndedJobLimits {
  size_t jobs = 128;  // each node of a job on this host counts
  double seconds = 7 * 86400;
  int64_t bytes = 8 << 20;
};
// Removes records beyond the limits and cleans up after killed fleetruns: their records become
// those of ended jobs, their sockets and unfinished files are removed. Quick: it opens only files
// that it removes.
void clean_runtime_folder(const EndedJobLimits& limits = {});

}  // namespace fleet
