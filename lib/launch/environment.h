// The environment of a rank, in the names of both Paddle generations and of torch.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "rendezvous/types.h"

namespace fleet {

using Variables = std::vector<std::pair<std::string, std::string>>;

// How a node's cores are shared out.
struct CorePlan {
  int threads = 0;         // OMP_NUM_THREADS; 0: the user's own stays
  std::vector<int> cores;  // a rank's; empty: not pinned
};
// For each of `ranks` ranks its part of `available`: max(1, cores / ranks) threads, pinned to as
// many cores where there are enough. Nothing where the user has set OMP_NUM_THREADS. `first` and
// `on_host` are for nodes that share this host: this node's first rank among `on_host` ranks.
std::vector<CorePlan> plan_cores(const std::vector<int>& available, int first, int ranks,
                                 int on_host, bool user_decides);

// What a rank needs to know beyond the Assignment.
struct RankContext {
  std::string job_id;
  std::string log_dir;
  std::string log_level = "INFO";
  std::string with_gloo;   // PADDLE_WITH_GLOO of the parameter-server mode
  int threads = 0;         // 0: OMP_NUM_THREADS is left alone
  int terminal_width = 0;  // of the terminal that shows this rank's output; 0: none does
};

// "ip:port" of every trainer, or parameter server, by rank.
std::vector<std::string> endpoints_of(const World& world, bool servers);

// What Paddle's older launcher prints as its table, in the order of that; in a job with parameter
// servers what both generations set for a role.
Variables table_environment(const Assignment& assignment, int local_rank,
                            const RankContext& context = {});
// Everything that is set for a rank: the above, fleetrun's own, and in collective training the
// newer Paddle's and torch's.
Variables rank_environment(const Assignment& assignment, int local_rank,
                           const RankContext& context);
// What is taken out: proxies break the ranks' own connections, and a parameter server is no
// trainer.
std::vector<std::string> removed_environment(const Assignment& assignment, int local_rank);

}  // namespace fleet
