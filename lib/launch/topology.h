// Which nodes there are, which one this is, and where the rendezvous is.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/config.h"

namespace fleet {

// What the operating system knows, so that the rest can be tested without it.
struct HostFacts {
  std::vector<std::string> addresses;                              // local_addresses()
  std::function<std::string(const std::string&)> resolve;          // names to numeric form
  std::function<std::string(const std::string&)> address_towards;  // for --master without --host
};
HostFacts host_facts();

struct Topology {
  std::vector<std::string> nodes;  // --ips; empty where nodes are only counted
  int nnodes = 1;
  int node_rank = 0;    // -1: given by arrival
  std::string address;  // this node's
  enum class Hosting { kYes, kNo, kIfFree } hosting = Hosting::kYes;
  std::string rendezvous_address;  // to listen on or to reach
  int rendezvous_port = 0;         // 0: a free one (single node)
  int start_port = 0;              // 0: free ports
};

// kUsage where the options contradict each other or this host, saying what would be right.
Topology resolve_topology(const Settings& settings, const HostFacts& host);

}  // namespace fleet
