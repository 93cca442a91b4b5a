#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "base/terminal_text.h"
#include "launch/planning/addresses.h"
#include "launch/starting/start_job.h"
#include "node/runtime_folder.h"
#include "rendezvous/job_lookup.h"

namespace fleet {
namespace {

// "" if there is no folder that only this user can write.
std::string socket_folder() {
  try {
    return make_runtime_folder();
  } catch (const Error& error) {
    spdlog::debug("{}", error.what());
    return {};
  }
}

RendezvousServerOptions server_options(const LaunchPlan& plan) {
  RendezvousServerOptions options;
  options.job = job_of(plan);
  options.timeout = plan.config().rendezvous_timeout;
  options.security = plan.security;
  options.heartbeat_timeout = plan.config().heartbeat_timeout;
  options.network = !plan.topology.is_single_node();
  options.local_folder = socket_folder();
  options.connections_per_node = std::max(16, plan.ranks.local_world_size + 2);
  return options;
}

// The next host is one of the first remaining nodes.
constexpr size_t kAsked = 16;
constexpr std::chrono::milliseconds kLookupTimeout{1'000};

// Asks the nodes of --ips for the rendezvous of the running job, except `without`. Returns its
// address and port; "" if there is none.
std::string find_other_host(const LaunchPlan& plan, const std::vector<std::string>& without) {
  std::vector<std::string> at;  // a new host prefers this port
  for (const std::string& node : plan.topology.nodes) {
    if (at.size() == kAsked || std::ranges::find(without, node) != without.end()) continue;
    at.push_back(endpoint(node, plan.topology.rendezvous_port));
  }
  return find_running_job(at, plan.config().job_id.value, plan.security, kLookupTimeout);
}

}  // namespace

std::unique_ptr<RendezvousServer> host_rendezvous(const LaunchPlan& plan) {
  const Topology& topology = plan.topology;
  if (topology.hosting == Topology::Hosting::kNo) return nullptr;
  RendezvousServerOptions options = server_options(plan);
  const bool own = topology.rendezvous_address == topology.address;
  options.host = resolve(own ? topology.bind_address : topology.rendezvous_address);
  options.port = topology.rendezvous_port;
  // Another node on this host may have taken the port first.
  auto server = topology.hosting == Topology::Hosting::kIfFree
                    ? RendezvousServer::make_if_free(options)
                    : std::make_unique<RendezvousServer>(options);
  if (server && options.security.open() && server->open_to_network()) {
    spdlog::warn(
        "--insecure: the rendezvous listens on {} and accepts everyone who reaches it. They can "
        "stop the job and read its store; use a network that you trust",
        endpoint(options.host, server->port()));
  }
  return server;
}

RendezvousClientOptions client_options(const LaunchPlan& plan, const RendezvousServer* server) {
  RendezvousClientOptions options;
  options.address = server
                        ? server->local_address()
                        : endpoint(plan.topology.rendezvous_address, plan.topology.rendezvous_port);
  options.timeout = plan.config().rendezvous_timeout;
  options.heartbeat_timeout = plan.config().heartbeat_timeout;
  options.security = plan.security;
  options.restarts = plan.config().restarts.max_restarts > 0;
  if (server) options.host = server->host();
  if (!server && options.restarts && !plan.topology.nodes.empty()) {
    options.find_moved = [&plan] { return find_other_host(plan, {plan.topology.address}); };
  }
  return options;
}

std::unique_ptr<RendezvousServer> take_over(const LaunchPlan& plan, const TakeOver& turn) {
  RendezvousServerOptions options = server_options(plan);
  options.host = resolve(plan.topology.bind_address);
  options.port = turn.port;
  options.from = turn.from;
  return std::make_unique<RendezvousServer>(options);
}

void rejoin_running_job(LaunchPlan* plan) {
  Topology& topology = plan->topology;
  const LaunchConfig& config = plan->config();
  const bool hosts = topology.hosting == Topology::Hosting::kYes;
  const bool may_have_moved = (hosts || topology.hosting == Topology::Hosting::kNo) &&
                              topology.nnodes > 1 && topology.rendezvous_port > 0 &&
                              config.restarts.max_restarts > 0;
  if (!may_have_moved) return;
  const std::string there = find_other_host(*plan, {topology.address, topology.rendezvous_address});
  if (there.empty()) return;
  spdlog::warn("job '{}' already runs, and its rendezvous is now at {}: this node joins it there",
               shown_name(config.job_id.value), there);
  topology.hosting = Topology::Hosting::kNo;
  for (const std::string& node : topology.nodes) {
    if (endpoint(node, topology.rendezvous_port) == there) topology.rendezvous_address = node;
  }
  if (hosts) reserve_failover_port(plan);
}

}  // namespace fleet
