// The checks of fleetrun doctor, and their report. A new check is a function and its line in
// report.cc.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
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
Findings check_settings(const NodeFacts& node);  // NCCL_* and others
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
  int mtu = 0;  // MTU of the interface that the other nodes connect to
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

// --- communication settings, above all NCCL's ---

// Reports misspelt names with the nearest known one, and names that PyTorch has renamed.
Findings check_spelling(const NodeFacts& node);
// Reports values that NCCL would ignore.
Findings check_values(const NodeFacts& node);
// Reports settings for debugging, and settings that contradict each other or this node.
Findings check_sense(const NodeFacts& node);

// --- the report on all nodes, and its formats ---

struct JobReport {
  struct Node {
    std::string address, hostname;
  };
  struct Entry {
    Finding finding;
    std::vector<int>
        nodes;  // the nodes with this finding; empty: it concerns several nodes together
  };
  std::vector<Node> nodes;     // by rank
  std::vector<Entry> entries;  // equal findings of several nodes share one entry

  Severity worst() const;
};

// `nodes` by rank. `allow_skew`: differences are warnings.
JobReport examine(const std::vector<NodeReport>& nodes, bool allow_skew);

// For people: one line per finding, with advice below it. `failures_only` omits other findings.
std::string report_table(const JobReport& report, bool failures_only = false);
// One entry without the name of the check: "node 1 (10.0.0.2): ...".
std::string report_line(const JobReport& report, const JobReport::Entry& entry);
// For programs, as JSON.
std::string report_json(const JobReport& report);
Json findings_json(const Findings& findings);  // an array

// Encoding between nodes. Decoding throws kInternal for malformed bytes.
std::string encode(const NodeReport& report);
NodeReport decode_node_report(std::string_view bytes);
std::string encode(const JobReport& report);
JobReport decode_job_report(std::string_view bytes);

}  // namespace fleet
