// The environment of a rank in the chosen dialects, and its share of the cores.
#pragma once

#include <string>
#include <vector>

#include "launch/planning/rank_context.h"

namespace fleet {

// A rank's share of the node's cores.
struct CorePlan {
  int threads = 0;         // OMP_NUM_THREADS; 0: keep the user's value
  std::vector<int> cores;  // cores to pin the rank to; empty: not pinned
};
// Divides `available` among `ranks` ranks: max(1, cores / ranks) threads each, pinned to as many
// cores if there are enough. Does nothing if the user set OMP_NUM_THREADS. `first` and `on_host`
// are for nodes that share this host: this node's first rank among `on_host` ranks. `quota` is the
// cgroup's limit in cores' worth of time, 0 if none. If it is less than the cores, it determines
// the threads, and no rank is pinned.
std::vector<CorePlan> plan_cores(const std::vector<int>& available, int first, int ranks,
                                 int on_host, bool user_decides, double quota = 0);

// Longer values go through a file: the rank gets NAME_FILE with the path, and no NAME. This is
// Paddle's limit for its lists; Linux allows 128 KiB per string.
inline constexpr size_t kMaxValueBytes = 48000;

// Returns `context` with the lists of this world for its dialects. Call it once before requesting
// the environments of many ranks; the functions below call it if the lists are missing.
RankContext with_lists(const Assignment& assignment, RankContext context);
// The lists that go through files, the same for all ranks of a generation.
std::vector<LongValue> long_values(const Assignment& assignment, const RankContext& context);

// The variables of the printed table: those of the first dialect. For Paddle, those that its older
// launcher prints, in the same order. In a job with parameter servers, those of a role. With
// `others`, the variables of the other dialects follow.
Variables table_environment(const Assignment& assignment, int local_rank,
                            const RankContext& context = {}, bool others = false);
// All variables of a rank: those of each dialect, and fleetrun's own.
Variables rank_environment(const Assignment& assignment, int local_rank,
                           const RankContext& context);
// The variables to remove: secrets, and for a parameter server those of a trainer. Of NAME and
// NAME_FILE only the one in `set`, the rank's own, remains.
std::vector<std::string> removed_environment(const Assignment& assignment, int local_rank,
                                             const Variables& set = {});

}  // namespace fleet
