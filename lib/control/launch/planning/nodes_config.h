// The options that say which nodes take part and where they meet, resolved.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/config.h"
#include "launch/planning/node_list.h"
#include "launch/planning/roles.h"
#include "launch/planning/sourced.h"
#include "rendezvous/types.h"

namespace fleet {

struct NodeCount {
  int min = 1, max = 1;

  bool is_range() const { return min != max; }
  std::string text() const;  // "4" or "2:4"
};
// Parses --nnodes, "4" or "2:4"; nullopt if it is not given. Throws kUsage for anything else.
std::optional<NodeCount> read_node_count(const Settings& settings);

// The one of max_restart and elastic_level that is ignored if they contradict each other; "" if
// they agree. A flag wins over the environment. Within the environment level -1 wins, as in Paddle.
// Throws kUsage for two contradicting flags.
std::string overruled_by_elasticity(const Settings& settings);

// The default of --max_restart is 3 if elasticity is requested (a range of nodes, --elastic_level
// 1), else 0. Throws kUsage if the options contradict each other.
RestartPolicy read_restart_policy(const Settings& settings);

// --master.
struct MasterAddress {
  std::string address;
  int port = 0;  // 0: not given
};

struct NodesConfig {
  // Those of --ips in rank order, or those of --servers and --workers; empty: nodes are counted.
  Sourced<std::vector<ListedNode>> listed;
  Sourced<std::optional<NodeCount>> count;  // --nnodes
  Sourced<std::optional<MasterAddress>> master;
  Sourced<std::string> host;                    // this node's address; "": found out
  Sourced<std::optional<int>> rank;             // this node's; nullopt: found out, or by arrival
  Sourced<std::optional<int>> rendezvous_port;  // --rdzv_port, or the port of --master; 0: any
  Sourced<std::optional<int>> start_port;       // 0: any
  int master_port = 0;                          // MASTER_PORT; 0: any

  bool several_counted() const {
    return listed.value.empty() && count.value && count.value->max > 1;
  }
};

// Throws kUsage for an invalid value, and for options that contradict each other.
NodesConfig read_nodes_config(const Settings& settings, const Roles& roles);

}  // namespace fleet
