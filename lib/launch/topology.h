// Which nodes there are, which one this is, and where the rendezvous is.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/config.h"
#include "launch/elasticity.h"
#include "launch/node_list.h"

namespace fleet {

// What the operating system knows, so that the rest can be tested without it.
struct HostFacts {
  std::string name;                                                // host_name()
  std::vector<std::string> addresses;                              // local_addresses()
  std::function<std::string(const std::string&)> resolve;          // names to numeric form
  std::function<std::string(const std::string&)> address_towards;  // for --master without --host
  int process = 1;  // this one's id: nodes that share a loopback address are told apart by it
};
HostFacts host_facts();

struct Topology {
  std::vector<std::string> nodes;  // --ips; empty where nodes are only counted
  std::string counts;              // --ips with its counts, where it has any: "a:8,b:4"
  int listed_devices = 0;          // this node's count; 0: not given
  int nnodes = 1;                  // that run; of --ips more may be listed, as spares
  int min_nodes = 1;               // that it may also run with
  int node_rank = 0;               // -1: given by arrival
  std::string address;             // this node's, as the others know it
  std::string bind_address;        // the same as far as this node's own sockets are concerned
  enum class Hosting { kYes, kNo, kIfFree } hosting = Hosting::kYes;
  std::string rendezvous_address;  // to listen on or to reach
  int rendezvous_port = 0;         // 0: a free one (single node, which needs none)
  int start_port = 0;              // 0: free ports
  int master_port = 0;             // MASTER_PORT; 0: any

  // No other node takes part, not even as a spare: nobody has to reach the rendezvous.
  bool alone() const { return nnodes == 1 && nodes.size() <= 1; }
};

// The nodes that the user lists: --ips, or those of --servers and --workers; none where they are
// counted. kUsage where the list makes no sense.
std::vector<ListedNode> listed_nodes(const Settings& settings);

// How many of the nodes that are listed run, by --nnodes: all where it is not given. kUsage where
// it contradicts the list.
NodeCount count_of_listed(const Settings& settings, int listed);

// Waits until the name of --master resolves, where several nodes meet there: the pods of a
// Kubernetes job run before their names are known. `now` and `pause` are the clock's; `say` gets a
// line after 2 s and every 10 s. kTimeout after --rdzv_timeout.
void wait_for_master_name(const Settings& settings, const HostFacts& host, const Clock& now,
                          const std::function<void()>& pause,
                          const std::function<void(const std::string&)>& say);

// kUsage where the options contradict each other or this host, saying what would be right.
Topology resolve_topology(const Settings& settings, const HostFacts& host);

}  // namespace fleet
