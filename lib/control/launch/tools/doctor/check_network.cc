// Checks of one node's interfaces and RDMA.
#include <algorithm>
#include <array>

#include "base/text.h"
#include "launch/planning/addresses.h"
#include "launch/tools/doctor/checks.h"

namespace fleet {
namespace {

constexpr long long kMiB = 1 << 20;

// Whether a list in NCCL's format contains this interface: prefixes, or exact names after `=`.
bool listed(const std::string& name, const std::vector<std::string>& list, bool exact) {
  return std::any_of(list.begin(), list.end(), [&](const std::string& entry) {
    return exact ? name == entry : name.starts_with(entry);
  });
}

std::vector<std::string> usable(const NodeFacts& node) {
  std::vector<std::string> names;
  for (const NetworkInterface& one : node.interfaces) {
    if (one.up && !one.addresses.empty()) names.push_back(one.name);
  }
  return names;
}

std::vector<std::string> matching(const NodeFacts& node, std::string rule) {
  const bool without = rule.starts_with('^');
  if (without) rule.erase(0, 1);
  const bool exact = rule.starts_with('=');
  if (exact) rule.erase(0, 1);
  const std::vector<std::string> list = split(rule, ',');
  std::vector<std::string> names = usable(node);
  std::erase_if(names,
                [&](const std::string& name) { return listed(name, list, exact) == without; });
  return names;
}

std::string all_interfaces(const NodeFacts& node) {
  std::vector<std::string> texts;
  for (const NetworkInterface& one : node.interfaces) {
    if (one.loopback || one.addresses.empty()) continue;
    texts.push_back(one.name + " " + one.addresses[0] + (one.up ? "" : " (down)"));
  }
  return texts.empty() ? "it has only lo" : "it has " + join(texts, ", ");
}

// "export NCCL_SOCKET_IFNAME=eth0" with the interface that has this node's address, if it leads to
// the other nodes.
std::string advice(const NodeFacts& node, const std::string& variable) {
  const NetworkInterface* primary_interface = node.primary_interface();
  if (primary_interface && !is_host_only(primary_interface->name))
    return "export " + variable + "=" + primary_interface->name;
  return "export " + variable + " with the interface that leads to the other nodes; " +
         all_interfaces(node);
}

}  // namespace

bool is_host_only(const std::string& interface) {
  constexpr std::array kPrefixes = {"docker", "virbr", "veth",  "br-",         "cni",   "flannel",
                                    "cali",   "lxc",   "lxdbr", "podman",      "vmnet", "vboxnet",
                                    "vnet",   "cbr",   "kube-", "nodelocaldns"};
  return std::any_of(kPrefixes.begin(), kPrefixes.end(),
                     [&](const char* prefix) { return interface.starts_with(prefix); });
}

std::vector<std::string> nccl_interfaces(const NodeFacts& node) {
  if (const std::string rule = node.setting("NCCL_SOCKET_IFNAME"); !rule.empty()) {
    return matching(node, rule);
  }
  // The order of NCCL 2.28.
  for (const char* rule : {"ib", "^docker,lo,virbr", "docker", "lo", "virbr"}) {
    const std::vector<std::string> names = matching(node, rule);
    if (!names.empty()) return names;
  }
  return {};
}

Findings check_interface(const NodeFacts& node) {
  if (node.nnodes == 1) return {};
  const NetworkInterface* primary_interface = node.primary_interface();
  if (!primary_interface) {
    return {fail(
        "interface", "no interface has this node's address " + node.address,
        "give --host, because the other nodes connect to this address; " + all_interfaces(node))};
  }
  const std::string text = primary_interface->name + " (" + node.numeric + ", MTU " +
                           std::to_string(primary_interface->mtu) + ") faces the other nodes";
  if (is_host_only(primary_interface->name)) {
    return {fail(
        "interface", text + ", but it reaches only containers and virtual machines of this host",
        "give the address of another interface in --ips or --host; " + all_interfaces(node))};
  }
  if (!primary_interface->up) {
    return {
        fail("interface", text + ", but it is down or has no link", "check ip link and the cable")};
  }
  return {ok("interface", text)};
}

Findings check_nccl_interface(const NodeFacts& node) {
  const NetworkInterface* primary_interface = node.primary_interface();
  if (node.nnodes == 1 || (primary_interface && primary_interface->loopback))
    return {};  // all nodes are on one machine
  // Without a GPU, NCCL is not used.
  const auto complain = node.gpu.gpus.empty() ? warn : fail;
  const std::vector<std::string> names = nccl_interfaces(node);
  const std::string rule = node.setting("NCCL_SOCKET_IFNAME");
  const std::string by = rule.empty() ? "" : " by NCCL_SOCKET_IFNAME=" + rule;
  const std::string next = advice(node, "NCCL_SOCKET_IFNAME");
  if (names.empty()) {
    return {complain("NCCL interface", "NCCL finds no interface that is up" + by, next)};
  }
  const std::string& first = names[0];
  const std::string text = "NCCL would use " + join(names, ", ") + by;
  for (const std::string& name : names) {
    if (!is_host_only(name)) continue;
    return {complain("NCCL interface",
                     text + (names.size() > 1 ? "; " + name : "; it") +
                         " reaches only containers and virtual machines of this host",
                     next)};
  }
  if (!primary_interface || primary_interface->name == first) return {ok("NCCL interface", text)};
  if (node.interface(first)->loopback) {
    return {complain("NCCL interface", text + ", which no other node can reach", next)};
  }
  // IP over InfiniBand is a separate network, which NCCL prefers.
  if (first.starts_with("ib")) return {ok("NCCL interface", text)};
  return {warn("NCCL interface",
               text + ", and connect to other ranks through " + first + ", while " +
                   primary_interface->name + " faces the other nodes",
               next)};
}

Findings check_gloo_interface(const NodeFacts& node) {
  const NetworkInterface* primary_interface = node.primary_interface();
  if (node.nnodes == 1 || (primary_interface && primary_interface->loopback)) return {};
  const std::string next = advice(node, "GLOO_SOCKET_IFNAME");
  if (const std::string name = node.setting("GLOO_SOCKET_IFNAME"); !name.empty()) {
    const NetworkInterface* chosen = node.interface(split(name, ',')[0]);
    if (!chosen || !chosen->up) {
      return {fail("gloo interface",
                   "GLOO_SOCKET_IFNAME=" + name + (chosen ? " is down" : " does not exist"), next)};
    }
    if (is_host_only(chosen->name)) {
      return {fail("gloo interface",
                   "GLOO_SOCKET_IFNAME=" + name +
                       " reaches only containers and virtual machines of this host",
                   next)};
    }
    return {ok("gloo interface", "PyTorch's gloo uses " + name)};
  }
  // Gloo resolves this host's own name.
  const std::string& own = node.hostname_address;
  if (own.empty() || is_loopback(own)) {
    return {warn("gloo interface",
                 "PyTorch's gloo uses the address of the host's name, and '" + node.hostname +
                     "' " + (own.empty() ? "does not resolve here" : "is " + own + " here"),
                 next + ", or correct /etc/hosts (fleet-worker does not depend on it)")};
  }
  return {ok("gloo interface", "PyTorch's gloo uses " + own)};
}

Findings check_rdma(const NodeFacts& node) {
  if (node.rdma.empty()) {
    return {ok("RDMA", "no device: NCCL uses TCP between nodes")};
  }
  Findings found;
  bool active = false;
  for (const RdmaPort& port : node.rdma) {
    const std::string name = port.device + " port " + std::to_string(port.port);
    if (port.state == "ACTIVE") {
      active = true;
      found.push_back(ok("RDMA", name + " is active (" + port.link_layer + ", " + port.rate + ")"));
    } else if (port.link_layer == "InfiniBand" && port.state == "INIT") {
      found.push_back(warn("RDMA", name + " waits for a subnet manager",
                           "check that opensm runs on this fabric"));
    } else {
      found.push_back(
          warn("RDMA", name + " is " + port.state,
               "check ibstat and the cable, or exclude it with NCCL_IB_HCA=^" + port.device));
    }
  }
  if (!active) return found;
  const long long locked = node.machine.locked_memory;
  if (locked >= 0 && locked < 64 * kMiB) {
    found.push_back(
        fail("locked memory",
             "at most " + std::to_string(locked >> 10) + " KiB: RDMA cannot register its buffers",
             "use ulimit -l unlimited, LimitMEMLOCK=infinity of the service, or docker "
             "--ulimit memlock=-1"));
  } else {
    found.push_back(
        ok("locked memory", locked < 0 ? "unlimited" : std::to_string(locked >> 20) + " MiB"));
  }
  if (!node.gpu.gpus.empty() && !node.gpu.peer_memory) {
    found.push_back(warn("RDMA", "nvidia_peermem is not loaded: data may go through host memory",
                         "run modprobe nvidia_peermem, unless the kernel supports DMA-BUF"));
  }
  return found;
}

}  // namespace fleet
