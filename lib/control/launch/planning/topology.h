// The nodes of a job, this node's place among them, and the rendezvous address.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "launch/planning/launch_config.h"

namespace fleet {

// Facts from the operating system, injected so that the rest can be tested without it.
struct HostFacts {
  std::string name;                                        // host_name()
  std::vector<std::string> addresses;                      // local_addresses()
  std::function<std::string(const std::string&)> resolve;  // resolves a name to numeric form
  std::function<std::string(const std::string&)> address_towards;  // for --master without --host
  int process = 1;  // process id, which distinguishes nodes that share a loopback address
};
HostFacts host_facts();
// Whether an address belongs to this host, or is a loopback address.
bool is_local(const HostFacts& host, const std::string& address);

struct Topology {
  std::vector<std::string> nodes;  // --ips; empty if nodes are only counted
  std::string counts;              // --ips with its counts, if any: "a:8,b:4"
  int listed_devices = 0;          // this node's count; 0: not given
  int nnodes = 1;                  // nodes that run; --ips may list more as spares
  int min_nodes = 1;               // the least number of nodes
  int node_rank = 0;               // -1: assigned by arrival
  std::string address;             // this node's, as other nodes know it
  std::string bind_address;        // the address of this node's own sockets
  enum class Hosting { kYes, kNo, kIfFree } hosting = Hosting::kYes;
  std::string rendezvous_address;  // to listen on or to reach
  int rendezvous_port = 0;         // 0: any free port (a single node needs none)
  int start_port = 0;              // 0: free ports
  int master_port = 0;             // MASTER_PORT; 0: any

  // Whether no other node takes part, not even as a spare, so that none connects to the
  // rendezvous.
  bool is_single_node() const { return nnodes == 1 && nodes.size() <= 1; }
};

// The number of listed nodes that run, by --nnodes; all of them by default. Throws kUsage if it
// contradicts the list.
NodeCount count_of_listed(const LaunchConfig& config);

// Waits until the name of --master resolves, if several nodes join there: the pods of a Kubernetes
// job start before their names are known. `now` and `pause` are the clock. `warn` gets a line after
// 2 s and then every 10 s. Throws kTimeout after --rdzv_timeout.
void wait_for_master_name(const LaunchConfig& config, const HostFacts& host, const Clock& now,
                          const std::function<void()>& pause,
                          const std::function<void(const std::string&)>& warn);

// Throws kUsage if the options contradict each other or this host, with advice.
Topology resolve_topology(const LaunchConfig& config, const HostFacts& host);

}  // namespace fleet
