// fleetrun debug: debugs one rank of a job in the foreground.
#pragma once

#include <string>
#include <vector>

#include "base/command_line.h"
#include "node/job_record.h"

namespace fleet {

struct DebugRequest {
  int rank = -1;
  std::string job;      // its --job_id, or the pid of its fleetrun; "": the only job
  bool attach = false;  // attach to the running process instead of starting the program
  std::vector<std::string> wrapper;  // words before the program or the pid; empty: gdb
};
// Throws kUsage if the line is not a valid request.
DebugRequest parse_debug_request(const CommandLine& line);

// Finds the rank among the jobs of this node. Throws kUsage if no job has it, or several do.
struct FoundRank {
  JobRecord job;
  JobRecord::Rank rank;
};
FoundRank find_rank(const DebugRequest& request, const std::vector<JobRecord>& jobs);

}  // namespace fleet
