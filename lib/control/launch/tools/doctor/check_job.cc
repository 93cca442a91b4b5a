// Checks between nodes: connections, MTU, clocks, skew.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/number_text.h"
#include "base/ranges.h"
#include "base/text.h"
#include "launch/tools/doctor/checks.h"

namespace fleet {
namespace {

constexpr size_t kShown = 8;  // most pairs or differences that are listed

std::string node_text(const NodeReport& node) {
  return "node " + std::to_string(node.node_rank) + " (" + node.address + ")";
}

// "node 2 (10.0.0.3)", "nodes 1-31".
std::string nodes_text(const std::vector<const NodeReport*>& nodes) {
  if (nodes.size() == 1) return node_text(*nodes[0]);
  std::vector<int> ranks;
  for (const NodeReport* node : nodes) ranks.push_back(node->node_rank);
  return "nodes " + ranges_text(ranks);
}

std::string what_happened(const Reach& reach) {
  switch (reach.result) {
    case ReachResult::kOk:
      return "ok";
    case ReachResult::kRefused:
      return "refused";
    case ReachResult::kTimeout:
      return "no answer (timeout)";
    case ReachResult::kUnreachable:
      return "unreachable (" + reach.detail + ")";
    case ReachResult::kUnexpectedPeer:
      return "another service answers: " + reach.detail;
    case ReachResult::kStalled:
      return "connects, but large packets do not arrive";
    case ReachResult::kFailed:
      return reach.detail;
  }
  return "?";
}

std::string advice_for(ReachResult result) {
  switch (result) {
    case ReachResult::kRefused:
      return "a firewall rejects the connection, or the address belongs to another host: allow all "
             "ports between the nodes, because ranks choose theirs";
    case ReachResult::kTimeout:
      return "a firewall or a switch drops the packets: allow all ports between the nodes, because "
             "ranks choose theirs";
    case ReachResult::kUnreachable:
      return "there is no route: run ip route get ADDRESS on the first of the two, or use "
             "addresses "
             "of another network in --ips";
    case ReachResult::kUnexpectedPeer:
      return "two hosts share the address, or NAT translates it: give addresses that reach the "
             "nodes directly";
    case ReachResult::kStalled:
      return "the MTU of the interfaces exceeds that of the path, and ICMP is dropped: lower it "
             "(ip link set DEV mtu 1500), or raise it on the switches";
    default:
      return "see the reason";
  }
}

const NodeReport* by_rank(const std::vector<NodeReport>& nodes, int rank) {
  for (const NodeReport& node : nodes) {
    if (node.node_rank == rank) return &node;
  }
  return nullptr;
}

}  // namespace

Findings check_reachability(const std::vector<NodeReport>& nodes) {
  Findings found;
  size_t pairs = 0, failed = 0;
  for (const NodeReport& from : nodes) {
    for (const Reach& reach : from.reached) {
      ++pairs;
      const NodeReport* to = by_rank(nodes, reach.node_rank);
      if (reach.result == ReachResult::kOk || !to || ++failed > kShown) continue;
      found.push_back(fail("reachability",
                           node_text(from) + " to " + node_text(*to) + ": " + what_happened(reach),
                           advice_for(reach.result)));
    }
  }
  if (failed > kShown) {
    found.push_back(fail("reachability",
                         "and " + std::to_string(failed - kShown) + " more of " +
                             std::to_string(pairs) + " connections",
                         "start with the first one"));
  }
  if (failed == 0 && pairs > 0) {
    found.push_back(ok("reachability", "every node connects to every other (" +
                                           std::to_string(pairs) + " connections)"));
  }
  return found;
}

Findings check_mtu(const std::vector<NodeReport>& nodes) {
  if (nodes.size() < 2) return {};
  Findings found;
  std::map<int, std::vector<const NodeReport*>> others;
  for (const NodeReport& node : nodes) {
    if (node.mtu == nodes[0].mtu || node.mtu == 0 || nodes[0].mtu == 0) continue;
    others[node.mtu].push_back(&node);
  }
  for (const auto& [mtu, with] : others) {
    found.push_back(warn("MTU",
                         nodes_text(with) + (with.size() == 1 ? " has " : " have ") +
                             std::to_string(mtu) + ", node 0 " + std::to_string(nodes[0].mtu),
                         "set the same on all: ip link set DEV mtu N"));
  }
  if (found.empty() && nodes[0].mtu > 0) {
    found.push_back(ok("MTU", std::to_string(nodes[0].mtu) + " on every node"));
  }
  return found;
}

Findings check_clocks(const std::vector<NodeReport>& nodes) {
  if (nodes.size() < 2) return {};
  Findings found;
  double furthest = 0;
  for (const NodeReport& from : nodes) {
    for (const Reach& reach : from.reached) {
      if (reach.node_rank != 0 || reach.result != ReachResult::kOk) continue;
      // A lower bound: the answer may have been under way for the whole round trip.
      const double off = std::max(0.0, std::abs(reach.clock_offset) - reach.round_trip / 2);
      furthest = std::max(furthest, off);
      if (off < 1) continue;
      const std::string text = node_text(from) + " is " + number_text(std::round(off * 10) / 10) +
                               " s " + (reach.clock_offset > 0 ? "behind" : "ahead of") + " node 0";
      constexpr char kNext[] = "run chrony or ntpd on every node";
      // Certificates of the control plane are valid for minutes only.
      found.push_back(off < 60 ? warn("clocks", text, kNext) : fail("clocks", text, kNext));
    }
  }
  if (found.empty()) {
    found.push_back(
        ok("clocks", "at most " + number_text(std::ceil(furthest * 1000)) + " ms from node 0's"));
  }
  return found;
}

Findings check_skew(const std::vector<NodeReport>& nodes, bool allowed) {
  if (nodes.size() < 2) return {};
  Findings found;
  const auto value = [](const NodeReport& node, const std::string& name) {
    const auto at = node.fingerprint.find(name);
    return at == node.fingerprint.end() ? std::string("not set") : "'" + at->second + "'";
  };
  std::set<std::string> names;
  for (const NodeReport& node : nodes) {
    for (const auto& [name, text] : node.fingerprint) names.insert(name);
  }
  for (const std::string& name : names) {
    const std::string here = value(nodes[0], name);
    std::map<std::string, std::vector<const NodeReport*>> others;
    for (const NodeReport& node : nodes) {
      if (value(node, name) != here) others[value(node, name)].push_back(&node);
    }
    for (const auto& [there, with] : others) {
      const std::string text =
          name + " is " + there + " on " + nodes_text(with) + " and " + here + " on node 0";
      const std::string next = "make them the same";
      found.push_back(allowed ? warn("skew", text, next)
                              : fail("skew", text, next + ", or give --allow_skew"));
    }
  }
  if (found.empty()) {
    found.push_back(
        ok("skew", "the same versions, binaries, libraries and settings on every node"));
  }
  return found;
}

}  // namespace fleet
