#include "launch/planning/topology.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "base/counted.h"
#include "base/error.h"
#include "base/text.h"
#include "launch/planning/addresses.h"
#include "launch/planning/options.h"
#include "launch/planning/refuse.h"

namespace fleet {

bool is_local(const HostFacts& host, const std::string& address) {
  const std::string numeric = host.resolve(address);
  const auto& own = host.addresses;
  return is_loopback(numeric) || std::find(own.begin(), own.end(), numeric) != own.end();
}

namespace {

// Debian's /etc/hosts maps the host's own name to 127.0.1.1, which no other node can reach. Listen
// on the address that faces another node instead.
std::string reachable_address(const HostFacts& host, const Topology& topology) {
  const std::string& address = topology.address;
  const std::string numeric = host.resolve(address);
  // "localhost" means that all nodes are on this host.
  if (numeric == address || !is_loopback(numeric) || address == "localhost") return address;
  for (const std::string& other : topology.nodes) {
    if (other == address || is_loopback(host.resolve(other))) continue;
    const std::string primary_interface = host.address_towards(other);
    if (!primary_interface.empty() && !is_loopback(primary_interface)) return primary_interface;
  }
  refuse("this host's name resolves to " + numeric + " here, where no other node can reach it",
         address,
         "give its IP address instead (" + join(host.addresses, ", ") + "), or correct /etc/hosts");
}

void check_ips(const std::vector<std::string>& ips, const std::string& origin) {
  std::set<std::string> seen;
  for (const std::string& ip : ips) {
    if (!seen.insert(ip).second) {
      refuse(ip + " is listed twice", origin,
             "list each node once; for several ranks per node use --gpus or --nproc_per_node");
    }
  }
}

// This host's position in --ips.
int find_self(const NodesConfig& config, const std::vector<std::string>& ips,
              const HostFacts& host) {
  const std::string& own = config.host.value;
  if (!own.empty()) {
    const auto found = std::find(ips.begin(), ips.end(), own);
    if (found == ips.end()) {
      refuse(own + " is not among --ips=" + join(ips, ","), config.host.origin,
             "give this node's address as listed there");
    }
    return static_cast<int>(found - ips.begin());
  }
  // If the list has this host's own name, resolve no other names: there may be thousands, and the
  // name service may not answer.
  const auto named = std::find(ips.begin(), ips.end(), host.name);
  if (named != ips.end() && is_local(host, *named)) return static_cast<int>(named - ips.begin());
  std::vector<std::string> mine;
  for (const std::string& ip : ips) {
    if (is_local(host, ip)) mine.push_back(ip);
  }
  if (mine.empty()) {
    refuse("none of " + join(ips, ", ") + " is an address of this host", config.listed.origin,
           "its addresses are " + join(host.addresses, ", ") +
               "; correct --ips, or select this host's entry with --host");
  }
  if (mine.size() > 1) {
    refuse(join(mine, " and ") + (mine.size() == 2 ? " are both" : " are all") +
               " addresses of this host",
           config.listed.origin, "select this node's address with --host");
  }
  return static_cast<int>(std::find(ips.begin(), ips.end(), mine[0]) - ips.begin());
}

// Nodes whose master is a loopback address are all on this host and need distinct addresses. All of
// 127.0.0.0/8 belongs to this host. `rank` is -1 if assigned by arrival.
std::string loopback_address(const HostFacts& host, int rank) {
  const int number = rank >= 0 ? rank + 1 : (1 << 16) + host.process % (1 << 22);
  return "127." + std::to_string(number >> 16) + "." + std::to_string(number >> 8 & 255) + "." +
         std::to_string(number & 255);
}

// Nodes given as a count: --nnodes and --master.
void resolve_counted(const NodesConfig& config, const HostFacts& host, Topology* topology) {
  const NodeCount count = config.count.value.value_or(NodeCount());
  const std::optional<MasterAddress>& master = config.master.value;
  const int rank = config.rank.value.value_or(-1);
  topology->nnodes = count.max;
  topology->min_nodes = count.min;
  if (topology->nnodes > 1 && !master) {
    refuse("several nodes need a rendezvous address", config.count.origin,
           "give the same --master=ADDRESS:PORT on every node, or list them with --ips");
  }
  if (rank >= topology->nnodes) {
    refuse("this job has no node " + std::to_string(rank) + "; its number of nodes is " +
               std::to_string(topology->nnodes),
           config.rank.origin, "nodes are numbered from 0; see --nnodes");
  }
  const std::string& own = config.host.value;
  if (!own.empty() && !is_local(host, own)) {
    refuse(own + " is not an address of this host", config.host.origin,
           "its addresses are " + join(host.addresses, ", "));
  }
  if (topology->nnodes == 1) {
    topology->address = !own.empty() ? own : master ? master->address : "127.0.0.1";
    topology->rendezvous_address = topology->address;
    return;
  }
  topology->rendezvous_address = master->address;
  topology->node_rank = rank;
  const bool here = is_local(host, master->address);
  if (rank == 0 && !here) {
    refuse(master->address + " is not an address of this host, which is node 0",
           config.master.origin,
           "start node 0 on the host of --master; this host's addresses are " +
               join(host.addresses, ", "));
  }
  using Hosting = Topology::Hosting;
  topology->hosting = rank == 0           ? Hosting::kYes
                      : rank > 0 || !here ? Hosting::kNo
                                          : Hosting::kIfFree;
  const std::string numeric = host.resolve(master->address);
  topology->address = !own.empty()                               ? own
                      : numeric.starts_with("127.") && rank != 0 ? loopback_address(host, rank)
                      : here && rank <= 0                        ? master->address
                                          : host.address_towards(master->address);
  if (topology->address.empty()) {
    refuse("there is no route to " + master->address, config.master.origin,
           "correct the address, or give this node's address with --host");
  }
}

// Nodes given as a list: --ips.
void resolve_listed(const LaunchConfig& config, const HostFacts& host, Topology* topology) {
  const NodesConfig& nodes = config.nodes;
  const std::vector<ListedNode>& listed = nodes.listed.value;
  for (const ListedNode& node : listed) {
    topology->nodes.push_back(node.address);
    if (node.devices > 0) topology->counts = list_text(listed);
  }
  check_ips(topology->nodes, nodes.listed.origin);
  const NodeCount count = count_of_listed(config);
  topology->nnodes = count.max;
  topology->min_nodes = count.min;
  topology->node_rank = find_self(nodes, topology->nodes, host);
  const int rank = nodes.rank.value.value_or(topology->node_rank);
  if (rank != topology->node_rank) {
    refuse("this host is number " + std::to_string(topology->node_rank) + " of --ips",
           nodes.rank.with(std::to_string(rank)), "leave --rank out with --ips");
  }
  const ListedNode& self = listed[static_cast<size_t>(topology->node_rank)];
  topology->address = self.address;
  topology->listed_devices = self.devices;
  if (!is_local(host, topology->address)) {
    refuse(topology->address + " is not an address of this host", nodes.host.origin,
           "its addresses are " + join(host.addresses, ", "));
  }
  topology->hosting = topology->node_rank == 0 ? Topology::Hosting::kYes : Topology::Hosting::kNo;
  topology->rendezvous_address = topology->nodes[0];
  const std::optional<MasterAddress>& master = nodes.master.value;
  if (master && master->address != topology->nodes[0]) {
    refuse("it contradicts --ips, whose first node hosts the rendezvous",
           nodes.master.with(master->address), "leave it out");
  }
}

}  // namespace

HostFacts host_facts() {
  HostFacts host;
  host.name = host_name();
  host.addresses = local_addresses();
  host.resolve = fleet::resolve;
  host.address_towards = fleet::address_towards;
  host.process = static_cast<int>(::getpid());
  return host;
}

NodeCount count_of_listed(const LaunchConfig& config) {
  const int listed = static_cast<int>(config.nodes.listed.value.size());
  const auto& count = config.nodes.count;
  if (!count.value) return {listed, listed};
  const bool spares = config.restarts.max_restarts > 0;
  // A batch system may have given less than the maximum.
  const bool fewer = count.value->is_range() && !config.nodes.listed.by_flag() &&
                     count.value->min <= listed && listed < count.value->max;
  if (fewer) return {count.value->min, listed};
  if (count.value->max > listed || (count.value->max < listed && !spares)) {
    refuse(
        "it contradicts " + config.nodes.listed.origin + ", which lists " + counted(listed, "node"),
        count.with(count.value->text()),
        count.value->max > listed ? "give only one of them"
                                  : "give only one of them, or --max_restart for spare nodes");
  }
  return *count.value;
}

void wait_for_master_name(const LaunchConfig& config, const HostFacts& host, const Clock& now,
                          const std::function<void()>& pause,
                          const std::function<void(const std::string&)>& warn) {
  const NodesConfig& nodes = config.nodes;
  if (!nodes.master.value || !nodes.count.value || nodes.count.value->max < 2) return;
  const std::string& name = nodes.master.value->address;
  const double timeout = std::chrono::duration<double>(config.rendezvous_timeout).count();
  const double start = now();
  double next_line = start + 2;
  while (host.resolve(name).empty()) {
    if (now() - start >= timeout) {
      throw Error(ErrorCode::kTimeout, "the name does not resolve", nodes.master.with(name),
                  "correct the name, add it to the name service of this cluster (Kubernetes: "
                  "a headless service, see config/kubernetes), or raise --rdzv_timeout");
    }
    if (now() >= next_line) {
      const double left = timeout - (now() - start);
      warn("waiting for the name " + name + " to resolve, for " +
           std::to_string(std::lround(left)) + " s more");
      next_line = now() + 10;
    }
    pause();
  }
}

Topology resolve_topology(const LaunchConfig& config, const HostFacts& host) {
  Topology topology;
  const NodesConfig& nodes = config.nodes;
  if (nodes.listed.value.empty()) {
    resolve_counted(nodes, host, &topology);
  } else {
    resolve_listed(config, host, &topology);
  }
  const bool several = !topology.is_single_node();
  topology.bind_address = several ? reachable_address(host, topology) : topology.address;
  if (!nodes.reached_at.empty()) topology.address = nodes.reached_at;
  topology.rendezvous_port =
      nodes.rendezvous_port.value.value_or(several ? kDefaultRendezvousPort : 0);
  topology.master_port = nodes.master_port;
  topology.start_port = nodes.start_port.value.value_or(several ? kDefaultStartPort : 0);
  return topology;
}

}  // namespace fleet
