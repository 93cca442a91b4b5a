// The checks of fleetrun doctor. A new check is a function and its line in checks.cc.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "launch/tools/doctor/facts.h"
#include "launch/tools/doctor/reachability.h"

namespace fleet {

// --- checks of a single node ---
using NodeCheck = Findings (*)(const NodeFacts&);
Findings check_gpus(const NodeFacts& node);
Findings check_libraries(const NodeFacts& node);
Findings check_interface(const NodeFacts& node);
Findings check_nccl_interface(const NodeFacts& node);
Findings check_gloo_interface(const NodeFacts& node);
Findings check_rdma(const NodeFacts& node);
Findings check_settings(const NodeFacts& node);  // NCCL_* and others, see nccl_settings.h
Findings check_cores(const NodeFacts& node);
Findings check_memory(const NodeFacts& node);
Findings check_open_files(const NodeFacts& node);
Findings check_shared_memory(const NodeFacts& node);
Findings check_disk(const NodeFacts& node);
// Runs all of the above.
Findings check_node(const NodeFacts& node);

// --- checks between nodes ---

// The report that a node sends to node 0.
struct NodeReport {
  int node_rank = 0;
  std::string address, hostname;
  Findings findings;
  int mtu = 0;  // of the interface that the other nodes connect to
  std::vector<std::string> gpus;
  std::map<std::string, std::string> fingerprint;  // fingerprint()
  std::vector<Reach> reached;                      // one per other node
};
NodeReport report_of(const NodeFacts& node);

using JobCheck = Findings (*)(const std::vector<NodeReport>&);
Findings check_reachability(const std::vector<NodeReport>& nodes);
Findings check_mtu(const std::vector<NodeReport>& nodes);
Findings check_clocks(const std::vector<NodeReport>& nodes);
Findings check_equal_gpus(const std::vector<NodeReport>& nodes);
// Reports differences from node 0. `allowed`: --allow_skew, warn instead of failing.
Findings check_skew(const std::vector<NodeReport>& nodes, bool allowed);

// Whether an interface leads only to containers and virtual machines of this host. Decided by name,
// because a pod's own eth0 is virtual too.
bool is_host_only(const std::string& interface);
// The interfaces that NCCL would use, in its order: those of NCCL_SOCKET_IFNAME, else by its own
// rule.
std::vector<std::string> nccl_interfaces(const NodeFacts& node);

}  // namespace fleet
