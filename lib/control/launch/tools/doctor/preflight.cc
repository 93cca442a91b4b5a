#include "launch/tools/doctor/preflight.h"

#include "base/env.h"
#include "base/error.h"
#include "base/log.h"
#include "launch/planning/addresses.h"
#include "launch/starting/start_job.h"
#include "launch/tools/doctor/checks.h"
#include "launch/tools/doctor/facts.h"
#include "launch/tools/doctor/reachability.h"
#include "rendezvous/store_client.h"

namespace fleet {
namespace {

// Time that one node may take longer than another. Losing a node ends the wait earlier.
constexpr std::chrono::milliseconds kNodeTimeout{60'000};

uint64_t token_of(const World& world) {
  return std::hash<std::string>()(endpoint(world.master_address(), world.master_port()) + " " +
                                  std::to_string(world.id().generation()));
}

// Tries every other node, starting with the next one, so that not all try the same node at once.
std::vector<Reach> reach_others(const Assignment& assignment, uint64_t token) {
  const World& world = *assignment.world;
  const int nodes = assignment.nnodes();
  std::vector<ReachTarget> targets;
  std::vector<Reach> unknown;
  for (int i = 1; i < nodes; ++i) {
    const auto rank = (assignment.node_rank + i) % nodes;
    const wire::Node& node = world.nodes(rank);
    const std::string numeric = resolve(node.address());
    if (numeric.empty()) {
      unknown.push_back(
          {rank, ReachResult::kFailed, "the name does not resolve on that node", 0, 0});
    } else {
      targets.push_back({rank, numeric, node.ports(0)});
    }
  }
  std::vector<Reach> all = reach_all(targets, token);
  all.insert(all.end(), unknown.begin(), unknown.end());
  return all;
}

std::string report_key(int node_rank) { return "doctor/node/" + std::to_string(node_rank); }

}  // namespace

JobReport exchange_reports(const LaunchPlan& plan, const NodeFacts& facts,
                           const Assignment& assignment) {
  const int nodes = assignment.nnodes();
  const bool allow_skew = plan.config().allow_skew;
  const wire::JobConfig job = job_of(plan).config;
  NodeReport mine = report_of(facts);
  mine.fingerprint = values_of(job.fingerprint());
  mine.node_rank = assignment.node_rank;
  if (nodes == 1) return examine({mine}, allow_skew);
  const auto connection =
      connect_store(assignment.store_address, job.job_id(), assignment.generation(),
                    assignment.node().first_rank(), plan.security);
  Store& store = *connection;
  const uint64_t token = token_of(*assignment.world);
  const ReachServer server(resolve(plan.topology.bind_address), assignment.node().ports(0), token,
                           assignment.node_rank);
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

NodeFacts gather_facts(const LaunchPlan& plan) {
  NodeFacts facts = gather_facts(whole_environment(), plan.log_dir);
  facts.address = plan.topology.address;
  facts.numeric = resolve(plan.topology.bind_address);
  facts.nnodes = plan.topology.nnodes;
  facts.ranks = plan.ranks.local_world_size;
  return facts;
}

std::string preflight(const LaunchPlan& plan, const NodeFacts& facts,
                      const Assignment& assignment) {
  const JobReport report = exchange_reports(plan, facts, assignment);
  for (const JobReport::Entry& entry : report.entries) {
    if (entry.finding.severity != Severity::kWarn) continue;
    const std::string line = report_line(report, entry);
    spdlog::warn("{}: {}; {}", entry.finding.check, line, entry.finding.next);
  }
  if (report.worst() != Severity::kFail) return {};
  return "the job does not start because --preflight found problems:\n" +
         report_table(report, true) + "  fleetrun doctor shows all findings";
}

void warn_of_settings() {
  const NodeFacts node = gather_settings(whole_environment());
  for (const Findings& found : {check_spelling(node), check_values(node)}) {
    for (const Finding& one : found) spdlog::warn("{}; {}", one.what, one.next);
  }
}

}  // namespace fleet
