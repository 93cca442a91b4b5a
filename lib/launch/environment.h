// The environment of a rank, in the dialects that were chosen, and its share of the cores.
#pragma once

#include <string>
#include <vector>

#include "launch/rank_context.h"

namespace fleet {

// How a node's cores are shared out.
struct CorePlan {
  int threads = 0;         // OMP_NUM_THREADS; 0: the user's own stays
  std::vector<int> cores;  // a rank's; empty: not pinned
};
// For each of `ranks` ranks its part of `available`: max(1, cores / ranks) threads, pinned to as
// many cores where there are enough. Nothing where the user has set OMP_NUM_THREADS. `first` and
// `on_host` are for nodes that share this host: this node's first rank among `on_host` ranks.
// `quota`: of the cgroup, in cores' worth of time, 0: none. Where it is less than the cores,
// threads are shared out by it, and nobody is pinned.
std::vector<CorePlan> plan_cores(const std::vector<int>& available, int first, int ranks,
                                 int on_host, bool user_decides, double quota = 0);

// A value of more characters goes through a file: the rank has NAME_FILE, its path, and no NAME. It
// is Paddle's bound for its lists; Linux has 128 KiB for a string.
inline constexpr size_t kLongestValue = 48000;

// `context` with the lists of this world and its dialects. Whoever asks for the environments of
// many ranks calls it once; the functions below do it for one that has none.
RankContext with_lists(const Assignment& assignment, RankContext context);
// The lists that go through files, alike for all ranks of an epoch.
std::vector<LongValue> long_values(const Assignment& assignment, const RankContext& context);

// What the printed table shows: the first dialect's, where that is Paddle what its older launcher
// prints, in the order of that; in a job with parameter servers what is set for a role. With
// `others` what the further dialects set follows.
Variables table_environment(const Assignment& assignment, int local_rank,
                            const RankContext& context = {}, bool others = false);
// Everything that is set for a rank: what each dialect has for it, and fleetrun's own.
Variables rank_environment(const Assignment& assignment, int local_rank,
                           const RankContext& context);
// What is taken out: secrets, and of a parameter server what a trainer has. Of NAME and NAME_FILE
// only what is in `set`, the rank's own.
std::vector<std::string> removed_environment(const Assignment& assignment, int local_rank,
                                             const Variables& set = {});

}  // namespace fleet
