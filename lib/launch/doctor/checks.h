// The checks of fleetrun doctor. A new one is a function and its line in checks.cc.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "launch/doctor/facts.h"
#include "launch/doctor/finding.h"
#include "launch/doctor/reach.h"

namespace fleet {

// --- of one node, by itself ---
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
// All of the above.
Findings check_node(const NodeFacts& node);

// --- between nodes ---

// What a node tells the others.
struct NodeReport {
  int node_rank = 0;
  std::string address, hostname;
  Findings findings;
  int mtu = 0;  // of the interface that faces the others
  std::vector<std::string> gpus;
  std::map<std::string, std::string> alike;  // fingerprint()
  std::vector<Reach> reached;                // every other node
};
NodeReport report_of(const NodeFacts& node);

using JobCheck = Findings (*)(const std::vector<NodeReport>&);
Findings check_reachability(const std::vector<NodeReport>& nodes);
Findings check_mtu(const std::vector<NodeReport>& nodes);
Findings check_clocks(const std::vector<NodeReport>& nodes);
Findings check_equal_gpus(const std::vector<NodeReport>& nodes);
// What differs from node 0. `allowed`: --allow_skew.
Findings check_skew(const std::vector<NodeReport>& nodes, bool allowed);

// Interfaces that lead to containers and virtual machines of this host, not to other hosts: by
// their names, since a pod's own eth0 is virtual too.
bool is_host_only(const std::string& interface);
// Those that NCCL would use, in its order: those of NCCL_SOCKET_IFNAME, else by its own rule.
std::vector<std::string> nccl_interfaces(const NodeFacts& node);

}  // namespace fleet
