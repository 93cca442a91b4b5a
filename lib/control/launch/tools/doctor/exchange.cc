#include "launch/tools/doctor/exchange.h"

#include <functional>
#include <optional>

#include "base/error.h"
#include "launch/planning/addresses.h"
#include "launch/tools/doctor/reachability.h"

namespace fleet {
namespace {

// How much longer one node may take than another. Losing a node ends the wait earlier.
constexpr std::chrono::milliseconds kNodeTimeout{60'000};

uint64_t token_of(const World& world) {
  return std::hash<std::string>()(endpoint(world.master_address, world.master_port) + " " +
                                  std::to_string(world.generation));
}

// Tries every other node, starting with the next one, so that not all try the same node at once.
std::vector<Reach> reach_others(const Assignment& assignment, uint64_t token) {
  const World& world = *assignment.world;
  const int nodes = assignment.nnodes();
  std::vector<ReachTarget> targets;
  std::vector<Reach> unknown;
  for (int i = 1; i < nodes; ++i) {
    const auto rank = (assignment.node_rank + i) % nodes;
    const NodePlacement& node = world.nodes[static_cast<size_t>(rank)];
    const std::string numeric = resolve(node.address);
    if (numeric.empty()) {
      unknown.push_back(
          {rank, ReachResult::kFailed, "the name does not resolve on that node", 0, 0});
    } else {
      targets.push_back({rank, numeric, node.ports.at(0)});
    }
  }
  std::vector<Reach> all = reach_all(targets, token);
  all.insert(all.end(), unknown.begin(), unknown.end());
  return all;
}

std::string report_key(int node_rank) { return "doctor/node/" + std::to_string(node_rank); }

}  // namespace

JobReport exchange_reports(const Assignment& assignment, const std::string& listen, Store& store,
                           NodeReport mine, bool allow_skew) {
  const int nodes = assignment.nnodes();
  mine.node_rank = assignment.node_rank;
  if (nodes == 1) return examine({mine}, allow_skew);
  const uint64_t token = token_of(*assignment.world);
  const ReachServer server(listen, assignment.node().ports.at(0), token, assignment.node_rank);
  store_barrier(store, "doctor/listening", nodes, kNodeTimeout);
  mine.reached = reach_others(assignment, token);
  store.set(report_key(assignment.node_rank), encode(mine));
  if (assignment.node_rank == 0) {
    std::vector<NodeReport> all;
    for (int rank = 0; rank < nodes; ++rank) {
      all.push_back(decode_node_report(store.get(report_key(rank), kNodeTimeout)));
    }
    store.set("doctor/report", encode(examine(all, allow_skew)));
  }
  JobReport report = decode_job_report(store.get("doctor/report", kNodeTimeout));
  // A node that leaves ends the job for the others, so all read the report first. The first to
  // leave may end the job before the answer to this barrier arrives here.
  try {
    store_barrier(store, "doctor/read", nodes, kNodeTimeout);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kPeerLost && error.code() != ErrorCode::kStale) throw;
  }
  return report;
}

}  // namespace fleet
