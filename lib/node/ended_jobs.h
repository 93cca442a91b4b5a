// The jobs of this node that have ended: small files beside the records of those that run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "node/job_record.h"

namespace fleet {

struct EndedJob {
  JobRecord record;
  JobEnd end;

  bool operator==(const EndedJob&) const = default;
};

std::string ended_job_json(const EndedJob& job);
// kUsage if the text is not such a record.
EndedJob read_ended_job(const std::string& json);

// Of a job whose fleetrun was killed: what its verdict.json says, if it got so far.
JobEnd end_of_killed(const JobRecord& record);

// Not synced to the disk. kUsage or kIo if it cannot be written.
void keep_ended_job(const EndedJob& job);

// Whether the end of this run is known already.
bool has_ended_record(const JobRecord& record);

// Oldest first. kUsage if the folder belongs to somebody else.
std::vector<EndedJob> find_ended_jobs();

// How many are kept, and how long.
struct EndedJobLimits {
  size_t jobs = 128;  // each node of a job on this host counts
  double seconds = 7 * 86400;
  int64_t bytes = 8 << 20;
};
// Removes what is beyond the limits, and what killed fleetruns have left: their records become
// those of ended jobs, their sockets and unfinished files go. Quick: it opens only what is to go.
void tidy_runtime_folder(const EndedJobLimits& limits = {});

}  // namespace fleet
