#include "launch/topology.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "launch/addresses.h"
#include "launch/node_list.h"
#include "launch/options.h"
#include "launch/roles.h"

namespace fleet {
namespace {

[[noreturn]] void usage(const std::string& what, const std::string& where,
                        const std::string& next) {
  throw Error(ErrorCode::kUsage, what, where, next);
}

// Whether an address belongs to this host, or is a loopback address.
bool is_local(const HostFacts& host, const std::string& address) {
  const std::string numeric = host.resolve(address);
  const auto& own = host.addresses;
  return is_loopback(numeric) || std::find(own.begin(), own.end(), numeric) != own.end();
}

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
  usage("this host's name resolves to " + numeric + " here, where no other node can reach it",
        address,
        "give its IP address instead (" + join(host.addresses, ", ") + "), or correct /etc/hosts");
}

void check_ips(const std::vector<std::string>& ips, const std::string& origin) {
  std::set<std::string> seen;
  for (const std::string& ip : ips) {
    if (!seen.insert(ip).second) {
      usage(ip + " is listed twice", origin,
            "list each node once; for several ranks per node use --gpus or --nproc_per_node");
    }
  }
}

// This host's position in --ips.
int find_self(const Settings& settings, const std::vector<std::string>& ips,
              const HostFacts& host) {
  const std::string& own = settings.text("host");
  if (!own.empty()) {
    const auto found = std::find(ips.begin(), ips.end(), own);
    if (found == ips.end()) {
      usage(own + " is not among --ips=" + join(ips, ","), settings.origin("host"),
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
    usage("none of " + join(ips, ", ") + " is an address of this host", settings.origin("ips"),
          "its addresses are " + join(host.addresses, ", ") +
              "; correct --ips, or select this host's entry with --host");
  }
  if (mine.size() > 1) {
    usage(join(mine, " and ") + " are all addresses of this host", settings.origin("ips"),
          "select this node's address with --host");
  }
  return static_cast<int>(std::find(ips.begin(), ips.end(), mine[0]) - ips.begin());
}

struct Master {
  std::string address;
  int port = 0;  // 0: not given
};

Master parse_master(const Settings& settings) {
  const std::string& text = settings.text("master");
  const std::string where = settings.origin("master") + " " + text;
  if (text.find("://") != std::string::npos) {
    usage("only the built-in rendezvous is supported", where,
          "write it like --master=10.0.0.1:6768");
  }
  const size_t colon = text.rfind(':');
  const bool bare_ipv6 = text.find(':') != colon && !text.starts_with('[');
  Master master{text, 0};
  if (colon != std::string::npos && !bare_ipv6 && !text.ends_with(']')) {
    long long port = 0;
    if (!parse_int(std::string_view(text).substr(colon + 1), &port) || port < 1 || port > 65535) {
      usage("the port is not a number from 1 to 65535", where,
            "write it like --master=10.0.0.1:6768");
    }
    master = {text.substr(0, colon), static_cast<int>(port)};
  }
  if (master.address.starts_with('[') && master.address.ends_with(']')) {
    master.address = master.address.substr(1, master.address.size() - 2);
  }
  if (master.address.empty())
    usage("the address is missing", where, "write it like --master=10.0.0.1:6768");
  return master;
}

// Nodes whose master is a loopback address are all on this host and need distinct addresses. All of
// 127.0.0.0/8 belongs to this host. `rank` is -1 if assigned by arrival.
std::string loopback_address(const HostFacts& host, int rank) {
  const int number = rank >= 0 ? rank + 1 : (1 << 16) + host.process % (1 << 22);
  return "127." + std::to_string(number >> 16) + "." + std::to_string(number >> 8 & 255) + "." +
         std::to_string(number & 255);
}

// Nodes given as a count: --nnodes and --master.
void resolve_counted(const Settings& settings, const HostFacts& host,
                     const std::optional<Master>& master, Topology* topology) {
  const NodeCount count = node_count(settings);
  const auto rank = static_cast<int>(settings.integer("rank"));
  topology->nnodes = std::max(count.max, 1);
  topology->min_nodes = std::max(count.min, 1);
  if (topology->nnodes > 1 && !master) {
    usage("several nodes need a rendezvous address", settings.origin("nnodes"),
          "give the same --master=ADDRESS:PORT on every node, or list them with --ips");
  }
  if (given_by_flag(settings, "sort_ip") && settings.boolean("sort_ip") && topology->nnodes > 1) {
    usage("nodes without a list get their ranks from --rank, or by arrival", "--sort_ip",
          "list them with --ips, or leave it out");
  }
  if (rank >= topology->nnodes) {
    usage("this job has no node " + std::to_string(rank) + "; its number of nodes is " +
              std::to_string(topology->nnodes),
          settings.origin("rank"), "nodes are numbered from 0; see --nnodes");
  }
  const std::string& own = settings.text("host");
  if (!own.empty() && !is_local(host, own)) {
    usage(own + " is not an address of this host", settings.origin("host"),
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
    usage(master->address + " is not an address of this host, which is node 0",
          settings.origin("master"),
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
    usage("there is no route to " + master->address, settings.origin("master"),
          "correct the address, or give this node's address with --host");
  }
}

// Nodes given as a list: --ips.
void resolve_listed(const Settings& settings, const HostFacts& host,
                    const std::vector<ListedNode>& listed, const std::optional<Master>& master,
                    Topology* topology) {
  for (const ListedNode& node : listed) {
    topology->nodes.push_back(node.address);
    if (node.devices > 0) topology->counts = list_text(listed);
  }
  check_ips(topology->nodes, settings.origin("ips"));
  const NodeCount count = count_of_listed(settings, static_cast<int>(topology->nodes.size()));
  topology->nnodes = count.max;
  topology->min_nodes = count.min;
  topology->node_rank = find_self(settings, topology->nodes, host);
  const auto rank = settings.integer("rank");
  if (rank >= 0 && rank != topology->node_rank) {
    usage("this host is number " + std::to_string(topology->node_rank) + " of --ips",
          settings.origin("rank") + " " + std::to_string(rank), "leave --rank out with --ips");
  }
  const ListedNode& self = listed[static_cast<size_t>(topology->node_rank)];
  topology->address = self.address;
  topology->listed_devices = self.devices;
  if (!is_local(host, topology->address)) {
    usage(topology->address + " is not an address of this host", settings.origin("host"),
          "its addresses are " + join(host.addresses, ", "));
  }
  topology->hosting = topology->node_rank == 0 ? Topology::Hosting::kYes : Topology::Hosting::kNo;
  topology->rendezvous_address = topology->nodes[0];
  if (master && master->address != topology->nodes[0]) {
    usage("it contradicts --ips, whose first node hosts the rendezvous",
          settings.origin("master") + " " + settings.text("master"), "leave it out");
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

NodeCount count_of_listed(const Settings& settings, int listed) {
  const NodeCount count = node_count(settings);
  if (count.max == 0) return {listed, listed};
  const bool spares = restart_policy(settings).max_restarts > 0;
  if (count.max > listed || (count.max < listed && !spares)) {
    usage("it contradicts --ips, which lists " + std::to_string(listed) + " nodes",
          settings.origin("nnodes") + " " + settings.text("nnodes"),
          count.max > listed ? "give only one of them"
                             : "give only one of them, or --max_restart for spare nodes");
  }
  return count;
}

void wait_for_master_name(const Settings& settings, const HostFacts& host, const Clock& now,
                          const std::function<void()>& pause,
                          const std::function<void(const std::string&)>& warn) {
  if (settings.text("master").empty() || node_count(settings).max < 2) return;
  const std::string name = parse_master(settings).address;
  const double start = now();
  double next_line = start + 2;
  while (host.resolve(name).empty()) {
    if (now() - start >= settings.number("rdzv_timeout")) {
      throw Error(ErrorCode::kTimeout, "the name does not resolve",
                  settings.origin("master") + " " + name,
                  "correct the name, add it to the name service of this cluster (Kubernetes: "
                  "a headless service, see config/kubernetes), or raise --rdzv_timeout");
    }
    if (now() >= next_line) {
      const double left = settings.number("rdzv_timeout") - (now() - start);
      warn("waiting for the name " + name + " to resolve, for " +
           std::to_string(std::lround(left)) + " s more");
      next_line = now() + 10;
    }
    pause();
  }
}

std::vector<ListedNode> listed_nodes(const Settings& settings) {
  const Roles roles = read_roles(settings);
  if (roles.listed()) return roles.nodes();
  std::vector<ListedNode> nodes =
      expand_nodes(join(settings.texts("ips"), ","), settings.origin("ips"));
  if (settings.boolean("sort_ip")) sort_by_address(&nodes);
  return nodes;
}

Topology resolve_topology(const Settings& settings, const HostFacts& host) {
  Topology topology;
  std::optional<Master> master;
  if (!settings.text("master").empty()) master = parse_master(settings);
  const std::vector<ListedNode> listed = listed_nodes(settings);
  if (listed.empty()) {
    resolve_counted(settings, host, master, &topology);
  } else {
    resolve_listed(settings, host, listed, master, &topology);
  }
  const bool several = !topology.is_single_node();
  topology.bind_address = several ? reachable_address(host, topology) : topology.address;
  const auto port = static_cast<int>(settings.integer("rdzv_port"));
  if (master && master->port > 0 && port > 0 && master->port != port) {
    usage("it contradicts --master", settings.origin("rdzv_port") + " " + std::to_string(port),
          "give the port in only one of them");
  }
  topology.rendezvous_port = settings.given("rdzv_port")  ? port
                             : master && master->port > 0 ? master->port
                             : several                    ? kDefaultRendezvousPort
                                                          : 0;
  // For several counted nodes, --master_port is the port of the rendezvous.
  if (!several || !listed.empty()) {
    topology.master_port = static_cast<int>(settings.integer("master_port"));
  }
  const auto start_port = static_cast<int>(settings.integer("start_port"));
  topology.start_port = settings.given("start_port") ? start_port : several ? kDefaultStartPort : 0;
  return topology;
}

}  // namespace fleet
