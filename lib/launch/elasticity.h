// How many nodes a job has, and whether it starts again: --nnodes and the options of restarts.
#pragma once

#include <string>

#include "base/config.h"
#include "rendezvous/types.h"

namespace fleet {

struct NodeCount {
  int min = 0, max = 0;  // 0: not given

  bool is_range() const { return min != max; }
};
// "4" or "2:4". kUsage where it is neither.
NodeCount node_count(const Settings& settings);

// Which of max_restart and elastic_level does not count, where they contradict each other; "" where
// they do not. A flag wins over the environment, and there level -1, as Paddle has it. kUsage for
// two flags.
std::string overruled_by_elasticity(const Settings& settings);

// --max_restart is 3 where elasticity is asked for (a range of nodes, --elastic_level 1), else 0.
// kUsage where the options contradict each other.
RestartPolicy restart_policy(const Settings& settings);

}  // namespace fleet
