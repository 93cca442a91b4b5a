#include <algorithm>
#include <cstdio>

#include "base/env.h"
#include "base/error.h"
#include "base/log.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "launch/planning/addresses.h"
#include "launch/planning/fingerprint.h"
#include "launch/planning/program.h"
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

// Where the nodes of --ips, except `without`, have the rendezvous of the running job if they host
// it.
std::vector<std::string> other_addresses(const LaunchPlan& plan,
                                         const std::vector<std::string>& without) {
  std::vector<std::string> at;  // a new host prefers this port
  for (const std::string& node : plan.topology.nodes) {
    if (at.size() == kAsked || std::ranges::find(without, node) != without.end()) continue;
    at.push_back(endpoint(node, plan.topology.rendezvous_port));
  }
  return at;
}

}  // namespace

JobSpec job_of(const LaunchPlan& plan) {
  const LaunchConfig& config = plan.config();
  JobSpec job;
  wire::JobConfig& shared = job.config;
  job.min_nodes = plan.topology.min_nodes;
  job.restarts = config.restarts;
  const auto& program = plan.request.program;
  const bool trains =
      !program.empty() && is_job_file(program[0]) && config.program_kind == ProgramKind::kByName;
  if (trains) job.restarts.final_exit = 2;  // fleet-worker: its input is wrong
  shared.set_job_id(config.job_id.value);
  shared.set_nnodes(plan.topology.nnodes);
  shared.mutable_addresses()->Assign(plan.topology.nodes.begin(), plan.topology.nodes.end());
  shared.set_version(FLEET_VERSION);
  const auto agree = [&](const char* name, std::string value) {
    add_value(name, std::move(value), shared.mutable_agreed_config());
  };
  agree("--run_mode", plan.doctor ? "doctor" : config.roles.wanted ? "ps" : "collective");
  agree("--dialect", join(config.dialects, ","));
  if (config.roles.listed()) {
    agree("--servers", list_text(config.roles.servers));
    agree("--workers", list_text(config.roles.trainers));
  }
  if (config.roles.wanted) {
    agree("--replace_trainers", wire::RankCommand::Replacement_Name(config.roles.replacement) +
                                    ", at most " + std::to_string(job.restarts.max_replacements));
  }
  if (job.min_nodes != shared.nnodes() || job.restarts.max_restarts > 0) {
    const std::optional<NodeCount>& count = config.nodes.count.value;
    agree("--nnodes", count ? count->text() : "");
    agree("--max_restart", std::to_string(job.restarts.max_restarts));
    agree("--no_progress_restarts", std::to_string(job.restarts.no_progress_restarts));
    agree("--elastic_timeout", std::to_string(job.restarts.elastic_timeout.count()) + " ms");
  }
  char heartbeat[32];
  std::snprintf(heartbeat, sizeof heartbeat, "%g",
                std::chrono::duration<double>(config.heartbeat_timeout).count());
  agree("--heartbeat_timeout", heartbeat);
  if (config.preflight && !plan.doctor) agree("--preflight", "true");  // all nodes compare results
  if (!plan.topology.counts.empty()) agree("--ips", plan.topology.counts);
  shared.set_allow_skew(plan.doctor || config.allow_skew);  // the doctor reports all differences
  if (shared.nnodes() > 1) {
    for (auto& [name, value] :
         fingerprint({plan.command, plan.trains, plan.on_gpus(), whole_environment()})) {
      add_value(name, value, shared.mutable_fingerprint());
    }
  }
  return job;
}

wire::Node node_of(const LaunchPlan& plan) {
  wire::Node node;
  node.set_address(plan.topology.address);
  node.set_hostname(host_name());
  for (size_t rank = 0; rank < plan.ports.size(); ++rank) {  // a port for each rank; doctor has one
    add_rank(&node, plan.ranks.devices[rank], plan.ports[rank].port());
  }
  node.set_servers(plan.local_roles.servers);
  if (plan.config().roles.listed()) {
    for (const RoleEntry& entry : plan.local_roles.entries) node.add_ranks(entry.rank);
  }
  if (plan.failover_port) node.set_rdzv_port(plan.failover_port->port());
  node.set_role(plan.config().role);
  return node;
}

wire::Join join_of(const LaunchPlan& plan, bool hosts_rendezvous) {
  wire::Join join = join_for(job_of(plan).config);
  *join.mutable_node() = node_of(plan);
  if (plan.topology.node_rank >= 0) join.set_node_rank(plan.topology.node_rank);
  join.set_hosts_rendezvous(hosts_rendezvous);
  if (plan.master_port) join.set_master_port(plan.master_port->port());
  return join;
}

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
  options.elastic_timeout = plan.config().restarts.elastic_timeout;
  if (server) options.host = server->host();
  if (!server && options.restarts) {
    options.other_addresses = other_addresses(plan, {plan.topology.address});
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
  const std::string there =
      find_running_job(other_addresses(*plan, {topology.address, topology.rendezvous_address}),
                       config.job_id.value, plan->security, kLookupTimeout);
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
