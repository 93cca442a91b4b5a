// Which ranks show on the console: --ranks and --local_ranks_filter.
#pragma once

#include <set>
#include <string>

#include "base/config.h"
#include "rendezvous/types.h"

namespace fleet {

struct ShownRanks {
  bool chosen = false;  // else local rank 0 of each node, as Paddle has it
  bool all = false;
  std::set<int> ranks, local_ranks;  // global, and of each node

  bool shows(int rank, int local_rank) const {
    return chosen ? all || ranks.contains(rank) || local_ranks.contains(local_rank)
                  : local_rank == 0;
  }
};

// "all", or numbers and ranges: "0,3-5". kUsage otherwise.
ShownRanks read_shown_ranks(const Settings& settings);

// In front of each line where ranks were chosen: "[rank 3] ", or "[rank 3 10.0.0.2] " in a job of
// several nodes.
std::string line_prefix(const Assignment& assignment, int rank);

}  // namespace fleet
