// The node count and the restart policy of a job: --nnodes and the options of restarts.
#pragma once

#include <optional>
#include <string>

#include "base/config.h"
#include "rendezvous/types.h"

namespace fleet {

struct NodeCount {
  int min = 1, max = 1;

  bool is_range() const { return min != max; }
  std::string text() const;  // "4" or "2:4"
};
// Parses --nnodes, "4" or "2:4"; nullopt if it is not given. Throws kUsage for anything else.
std::optional<NodeCount> read_node_count(const Settings& settings);

// Which of max_restart and elastic_level is ignored when they contradict each other; "" if they
// agree. A flag wins over the environment. Within the environment level -1 wins, as in Paddle.
// Throws kUsage for two contradicting flags.
std::string overruled_by_elasticity(const Settings& settings);

// The default of --max_restart is 3 if elasticity is requested (a range of nodes, --elastic_level
// 1), else 0. Throws kUsage if the options contradict each other.
RestartPolicy read_restart_policy(const Settings& settings);

}  // namespace fleet
