// Which ranks show on the console: --ranks and --local_ranks_filter.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/config.h"
#include "rendezvous/types.h"

namespace fleet {

// Which streams of a rank, by local rank: kStandardOutput | kStandardError.
struct StreamsOfRanks {
  int others = 0;
  std::map<int, int> by_rank;
  int of(int local_rank) const {
    const auto found = by_rank.find(local_rank);
    return found == by_rank.end() ? others : found->second;
  }
};

struct ShownRanks {
  bool chosen = false;  // else local rank 0 of each node, as Paddle has it
  bool all = false;
  std::set<int> ranks, local_ranks;  // global, and of each node
  StreamsOfRanks tee, redirects;     // of these
  StreamsOfRanks labels;  // whose lines show with their rank before them; others as they come

  bool shows(int rank, int local_rank) const {
    return chosen ? all || ranks.contains(rank) || local_ranks.contains(local_rank)
                  : local_rank == 0;
  }
  // Of what is shown: as torchrun has it, what is not redirected, or is redirected and teed.
  int streams(int rank, int local_rank) const {
    const int wanted = tee.of(local_rank) | (3 & ~redirects.of(local_rank));
    return shows(rank, local_rank) ? wanted : 0;
  }
};

// Whether an option says which ranks show.
bool chooses_ranks(const Settings& settings);

// --ranks and --local_ranks_filter: "all", or numbers and ranges: "0,3-5". --tee and --redirects:
// "3", or "0:1,2:3"; with one of them and neither of the others, all ranks are shown. kUsage where
// one is something else.
ShownRanks read_shown_ranks(const Settings& settings);

}  // namespace fleet
