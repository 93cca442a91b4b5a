// The ranks whose output the console shows: --ranks and --local_ranks_filter.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/config.h"
#include "rendezvous/types.h"

namespace fleet {

// Streams of each local rank: bits of wire::RankCommand::Stream.
struct RankStreams {
  int others = 0;
  std::map<int, int> by_rank;
  bool any() const { return others != 0 || !by_rank.empty(); }
  int of(int local_rank) const {
    const auto found = by_rank.find(local_rank);
    return found == by_rank.end() ? others : found->second;
  }
};

struct ShownRanks {
  bool chosen = false;  // false: local rank 0 of each node, as in Paddle
  bool all = false;
  std::set<int> ranks, local_ranks;  // global ranks, and local ranks of each node
  RankStreams tee, redirects;        // streams by local rank
  RankStreams labels;                // streams whose lines have their rank as prefix

  bool shows(int rank, int local_rank) const {
    return chosen ? all || ranks.contains(rank) || local_ranks.contains(local_rank)
                  : local_rank == 0;
  }
  // The shown streams of a rank. As in torchrun: not redirected, or redirected and teed.
  int streams(int rank, int local_rank) const {
    const int wanted = tee.of(local_rank) | (3 & ~redirects.of(local_rank));
    return shows(rank, local_rank) ? wanted : 0;
  }
};

// Parses --ranks and --local_ranks_filter ("all", or numbers and ranges such as "0,3-5"), and --tee
// and --redirects ("3" or "0:1,2:3"). With only --tee or --redirects, all ranks are shown. Throws
// kUsage for an invalid value.
ShownRanks read_shown_ranks(const Settings& settings);

}  // namespace fleet
