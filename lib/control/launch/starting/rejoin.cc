#include "launch/starting/rejoin.h"

#include <algorithm>

#include "base/log.h"
#include "base/terminal_text.h"
#include "launch/planning/addresses.h"
#include "rendezvous/job_lookup.h"

namespace fleet {
namespace {

// The next host is one of the first remaining nodes.
constexpr size_t kAsked = 16;
constexpr std::chrono::milliseconds kLookupTimeout{1'000};

}  // namespace

void rejoin_running_job(LaunchPlan* plan) {
  Topology& topology = plan->topology;
  const LaunchConfig& config = plan->config();
  const bool may_have_moved = topology.hosting == Topology::Hosting::kYes && topology.nnodes > 1 &&
                              topology.rendezvous_port > 0 && config.restarts.max_restarts > 0;
  if (!may_have_moved) return;
  std::vector<std::string> others, at;  // a new host prefers this port
  for (const std::string& node : topology.nodes) {
    if (node == topology.address || others.size() == kAsked) continue;
    others.push_back(node);
    at.push_back(endpoint(node, topology.rendezvous_port));
  }
  const std::string there =
      find_running_job(at, config.job_id.value, plan->security, kLookupTimeout);
  if (there.empty()) return;
  spdlog::warn("job '{}' already runs, and its rendezvous is now at {}: this node joins it there",
               shown_name(config.job_id.value), there);
  topology.hosting = Topology::Hosting::kNo;
  const auto found = std::find(at.begin(), at.end(), there) - at.begin();
  topology.rendezvous_address = others.at(static_cast<size_t>(found));
  reserve_failover_port(plan);
}

}  // namespace fleet
