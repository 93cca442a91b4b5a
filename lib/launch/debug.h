// fleetrun debug: one rank of a running job, in the foreground.
#pragma once

#include <string>
#include <vector>

#include "base/command_line.h"
#include "node/job_record.h"

namespace fleet {

struct DebugWish {
  int rank = -1;
  std::string job;                   // its --job_id, or the pid of its fleetrun; "": the only one
  bool attach = false;               // to the running process, instead of starting the program
  std::vector<std::string> wrapper;  // before the program, or the pid; empty: gdb
};
// kUsage where it is none.
DebugWish read_debug(const CommandLine& line);

// The rank that is meant, among the jobs of this node. kUsage where none has it, or several.
struct FoundRank {
  JobRecord job;
  JobRecord::Rank rank;
};
FoundRank find_rank(const DebugWish& wish, const std::vector<JobRecord>& jobs);

// How the program of a rank stands in for itself until somebody starts it with fleetrun debug:
// --debug_rank. In the environment, folder and on the cores of the rank.
std::vector<std::string> stand_in(const std::vector<std::string>& command);

// Its exit code is that of what was run.
Command debug_command();

}  // namespace fleet
