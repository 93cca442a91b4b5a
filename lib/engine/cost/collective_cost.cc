#include <algorithm>
#include <set>

#include "cost/step_time.h"
#include "ops/collective.h"

namespace fleet {
namespace {

double message_bytes(const Plan& plan, const PlannedOp& planned) {
  const auto sum = [&](const std::vector<VarId>& ids) {
    double bytes = 0;
    for (const VarId id : ids) bytes += static_cast<double>(plan.vars[id].bytes);
    return bytes;
  };
  return std::max(sum(planned.op.reads()), sum(planned.op.writes()));
}

// The group's ranks by node.
struct Spread {
  int ranks = 1, nodes = 1, per_node = 1;
};

Spread spread_of(const std::vector<int>& group, const JobTopology& topology) {
  std::set<int> nodes;
  for (const int rank : group) nodes.insert(topology.node_of(rank));
  Spread spread{.ranks = static_cast<int>(group.size()), .nodes = static_cast<int>(nodes.size())};
  spread.per_node = std::max(1, spread.ranks / spread.nodes);
  return spread;
}

// Number of whole messages that a rank sends on average, before the factor (n-1)/n of a ring:
// all_reduce reduces and then gathers, the others do one of both.
double times_sent(const std::string& type) { return type == "all_reduce" ? 2 : 1; }

// Bytes that the mean rank sends.
void count_bytes(const std::string& type, const std::string& transport, const Spread& spread,
                 CollectiveCost* cost) {
  const double times = times_sent(type), bytes = cost->bytes;
  const auto part = [](double n) { return (n - 1) / n; };
  if (spread.nodes <= 1) {
    cost->within = times * part(spread.ranks) * bytes;
  } else if (transport.starts_with("hierarchical") ||
             transport.find(" in groups of ") != std::string::npos) {
    cost->within = times * part(spread.per_node) * bytes;
    cost->between = times * part(spread.nodes) * bytes / spread.per_node;
  } else {  // a ring in the order of the ranks: one of each node's ranks sends to the next node
    const double all = times * part(spread.ranks) * bytes;
    cost->between = all / spread.per_node;
    cost->within = all - cost->between;
  }
}

void predict_seconds(const Spread& spread, const JobTopology& topology, CollectiveCost* cost) {
  cost->delay = 2.0 * (spread.ranks - 1) * topology.local_seconds;
  double transfer = cost->within / topology.local_bytes;
  if (spread.nodes > 1) {
    // The ranks of a node share its link.
    cost->delay += 2.0 * (spread.nodes - 1) * topology.link_seconds;
    transfer += cost->between * spread.per_node / topology.link_bytes;
  }
  cost->seconds = cost->delay + transfer;
}

// part: share of an all_reduce.
void measured_seconds(const LinkRates& link, double part, CollectiveCost* cost) {
  const double whole = link.seconds(cost->bytes);
  cost->seconds = whole * part;
  cost->delay = std::clamp(link.seconds(0), 0.0, whole) * part;
  cost->busy = std::min(link.busy(cost->bytes) * part, cost->seconds);
}

}  // namespace

std::string JobTopology::transport_of(const std::vector<int>& group) const {
  if (accelerator) return "nccl";
  const Spread spread = spread_of(group, *this);
  if (transport == "hierarchical") return "hierarchical(shm, gloo)";
  if (transport != "auto") return transport;
  if (spread.nodes <= 1) return "shm";
  return spread.per_node == 1 ? "gloo" : "hierarchical(shm, gloo)";
}

CollectiveCost collective_cost(const Plan& plan, const PlannedOp& planned,
                               const JobTopology& topology, const MachineRates& rates) {
  CollectiveCost cost;
  if (!is_collective(planned.op)) return cost;
  const RankGroup& of = group_of(plan.program, planned.op);
  const std::vector<int>& group = of.ranks;
  if (group.size() <= 1) return cost;
  const std::string& type = planned.op.type();
  const Spread spread = spread_of(group, topology);
  std::string transport = topology.transport_of(group);
  // As TwoLevelCommunicator::name().
  if (of.inner_group_size > 1 && !transport.starts_with("hierarchical")) {
    transport += " in groups of " + std::to_string(of.inner_group_size);
  }
  cost.bytes = message_bytes(plan, planned);
  if (type == "send" || type == "recv") {
    const bool far = topology.node_of(group.front()) != topology.node_of(group.back());
    (far ? cost.between : cost.within) = type == "send" ? cost.bytes : 0;
    cost.seconds = cost.bytes / (far ? topology.link_bytes : topology.local_bytes) +
                   (far ? topology.link_seconds : topology.local_seconds);
  } else {
    count_bytes(type, transport, spread, &cost);
    predict_seconds(spread, topology, &cost);
    if (const LinkRates* link = rates.find_link(transport, spread.ranks, spread.nodes)) {
      measured_seconds(*link, times_sent(type) / 2, &cost);
      return cost;
    }
  }
  cost.busy = cost.seconds * (1 - rates.idle_factor);
  if (!topology.accelerator && spread.nodes > 1) {  // a core copies and adds, and else waits
    cost.busy = std::min(cost.seconds, (cost.within + 2 * cost.between) / topology.local_bytes);
  }
  return cost;
}

}  // namespace fleet
