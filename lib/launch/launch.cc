#include "launch/launch.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>

#include "base/env.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "base/thread.h"
#include "launch/addresses.h"
#include "launch/arguments.h"
#include "launch/devices.h"
#include "launch/environment.h"
#include "launch/program.h"
#include "launch/run_to_end.h"
#include "launch/tables.h"
#include "launch/topology.h"
#include "node/agent.h"
#include "node/held_ports.h"
#include "node/process_tree.h"
#include "observe/progress.h"

namespace fleet {
namespace {

// Everything known before the other nodes are met.
struct LaunchPlan {
  LaunchRequest request;
  Topology topology;
  std::vector<std::vector<int>> devices;  // a rank
  std::vector<std::string> command;
  std::string log_dir;
  std::vector<HeldPort> ports;  // a rank
  std::unique_ptr<HeldPort> master_port;
};

std::chrono::milliseconds seconds_of(const Settings& settings, const char* key) {
  return std::chrono::milliseconds(static_cast<int64_t>(settings.number(key) * 1000));
}

std::string log_path(const std::string& log_dir, size_t local_rank) {
  return log_dir + "/workerlog." + std::to_string(local_rank);
}

// The logs must be writable before anything is started.
void check_logs(const Settings& settings, const std::string& log_dir, size_t ranks) {
  const auto refuse = [&](const std::string& reason, const std::string& where) {
    throw Error(ErrorCode::kUsage, "logs cannot be written: " + reason,
                settings.origin("log_dir") + " " + where, "choose another --log_dir");
  };
  try {
    make_directories(log_dir);
  } catch (const Error& error) {
    refuse(error.failure(), log_dir);
  }
  if (::access(log_dir.c_str(), W_OK | X_OK) != 0) refuse(::strerror(errno), log_dir);
  // Not made here: a start that is refused leaves no empty logs.
  for (size_t rank = 0; rank < ranks; ++rank) {
    const std::string path = log_path(log_dir, rank);
    const UniqueFd file(::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
    if (!file && errno != ENOENT) refuse(::strerror(errno), path);
  }
}

void hold_ports(LaunchPlan* plan) {
  const Topology& topology = plan->topology;
  const int first = topology.start_port;
  const auto hold = [&](int offset) {
    return first > 0 ? HeldPort::exactly(topology.bind_address, first + offset, "--start_port")
                     : HeldPort::any(topology.bind_address);
  };
  const int ranks = static_cast<int>(plan->devices.size());
  if (first + ranks > 65535) {
    throw Error(ErrorCode::kUsage,
                "ports from " + std::to_string(first) + " on do not reach for " +
                    std::to_string(ranks) + " ranks and MASTER_PORT",
                "--start_port", "choose a smaller one");
  }
  for (int rank = 0; rank < ranks; ++rank) plan->ports.push_back(hold(rank));
  // Any node may become node 0 where ranks are given by arrival.
  if (topology.node_rank <= 0) plan->master_port = std::make_unique<HeldPort>(hold(ranks));
}

// A job file is looked at before anything is started: the worker itself knows its keys. Its one
// line is the message.
void check_job_file(std::vector<std::string> command) {
  command.push_back("--print_config");
  const Finished check = run_to_end(command);
  if (check.exit_code != 2) return;  // anything else is the ranks' own affair
  constexpr std::string_view prefix = "fleet-worker: ";
  std::string_view line = trim(check.error_output);
  if (line.starts_with(prefix)) line.remove_prefix(prefix.size());
  throw Error(ErrorCode::kUsage, std::string(line));
}

LaunchPlan make_plan(LaunchRequest request) {
  LaunchPlan plan;
  const Settings& settings = request.settings;
  const HostFacts host = host_facts();
  wait_for_master_name(
      settings, host, monotonic_seconds, [] { ::usleep(250'000); },
      [](const std::string& line) { spdlog::warn("{}", line); });
  plan.topology = resolve_topology(settings, host);
  plan.devices = devices_of_ranks(settings, find_gpus(), plan.topology.listed_devices);
  plan.command = rank_command(request.program, worker_beside_launcher());
  if (plan.command.front() == worker_beside_launcher()) check_job_file(plan.command);
  plan.log_dir = settings.text("log_dir");
  check_logs(settings, plan.log_dir, plan.devices.size());
  plan.request = std::move(request);
  hold_ports(&plan);
  return plan;
}

JobSpec job_of(const LaunchPlan& plan) {
  const Settings& settings = plan.request.settings;
  JobSpec job;
  job.job_id = settings.text("job_id");
  job.nnodes = plan.topology.nnodes;
  job.addresses = plan.topology.nodes;
  job.version = FLEET_VERSION;
  job.agreed = {{"--run_mode", settings.text("run_mode")}};
  if (!plan.topology.counts.empty()) job.agreed["--ips"] = plan.topology.counts;
  return job;
}

NodeInfo node_of(const LaunchPlan& plan, bool hosts) {
  NodeInfo node;
  node.job = job_of(plan);
  node.address = plan.topology.address;
  node.node_rank = plan.topology.node_rank;
  node.hosts_rendezvous = hosts;
  node.devices = plan.devices;
  for (const HeldPort& port : plan.ports) node.ports.push_back(port.port());
  if (plan.master_port) node.master_port = plan.master_port->port();
  node.hostname = host_name();
  return node;
}

std::unique_ptr<RendezvousServer> host_rendezvous(const LaunchPlan& plan) {
  const Topology& topology = plan.topology;
  if (topology.hosting == Topology::Hosting::kNo) return nullptr;
  RendezvousServerOptions options;
  options.job = job_of(plan);
  const bool own = topology.rendezvous_address == topology.address;
  options.host = resolve(own ? topology.bind_address : topology.rendezvous_address);
  options.port = topology.rendezvous_port;
  options.timeout = seconds_of(plan.request.settings, "rdzv_timeout");
  try {
    auto server = std::make_unique<RendezvousServer>(options);
    if (server->open_to_network()) {
      spdlog::warn(
          "the rendezvous listens on {}: its connection is open, so use a network you trust",
          endpoint(options.host, server->port()));
    }
    return server;
  } catch (const Error& error) {
    // Another node on this host may have come first.
    const bool join = topology.hosting == Topology::Hosting::kIfFree;
    if (join && error.code() == ErrorCode::kUsage) return nullptr;
    throw;
  }
}

// Loopback addresses are this host by definition: such nodes share its cores.
std::vector<CorePlan> cores_of_ranks(const Assignment& assignment) {
  const NodePlacement& node = assignment.node();
  int first = 0, on_host = node.nproc();
  if (is_loopback(resolve(node.address))) {
    on_host = 0;
    for (const NodePlacement& other : assignment.world->nodes) {
      if (!is_loopback(resolve(other.address))) continue;
      if (other.node_rank == node.node_rank) first = on_host;
      on_host += other.nproc();
    }
  }
  return plan_cores(available_cores(), first, node.nproc(), on_host,
                    get_env("OMP_NUM_THREADS").has_value());
}

void print_start(const Assignment& assignment, const std::string& log_dir) {
  spdlog::info(
      "Local start {} processes. First process distributed environment info (Only For Debug): "
      "\n{}\n",
      assignment.node().nproc(), environment_table(table_environment(assignment, 0)));
  spdlog::info(
      "details about PADDLE_TRAINER_ENDPOINTS can be found in {0}/endpoints.log, and detail "
      "running logs maybe found in {0}/workerlog.0",
      log_dir);
}

std::vector<RankCommand> prepare_ranks(const LaunchPlan& plan, const Assignment& assignment) {
  // Not synced to the disk: it is a help for reading logs, and a start is to be quick.
  const std::string endpoints = plan.log_dir + "/endpoints.log";
  if (!(std::ofstream(endpoints) << endpoints_log(*assignment.world) << std::flush)) {
    spdlog::warn("{}: cannot be written", endpoints);
  }
  print_start(assignment, plan.log_dir);
  const std::vector<CorePlan> cores = cores_of_ranks(assignment);
  // A bar of other programs is their own affair: they see a pipe.
  const bool trains = plan.command.front() == worker_beside_launcher();
  std::vector<RankCommand> ranks;
  for (size_t local_rank = 0; local_rank < plan.devices.size(); ++local_rank) {
    RankCommand rank;
    rank.local_rank = static_cast<int>(local_rank);
    rank.argv = plan.command;
    rank.environment =
        rank_environment(assignment, rank.local_rank,
                         {plan.request.settings.text("job_id"), plan.log_dir,
                          plan.request.settings.text("log_level"), cores[local_rank].threads,
                          trains && local_rank == 0 ? terminal_width(STDOUT_FILENO) : 0});
    rank.removed = removed_environment();
    rank.cores = cores[local_rank].cores;
    rank.log_path = log_path(plan.log_dir, local_rank);
    rank.console = local_rank == 0;
    ranks.push_back(std::move(rank));
  }
  return ranks;
}

int run(LaunchRequest request) {
  const Settings& settings = request.settings;
  set_up_logging(settings.text("log_level"), "fleetrun");
  LaunchPlan plan = make_plan(std::move(request));
  const bool gpu = !plan.devices[0].empty();
  std::fputs(configuration_block(plan.request.settings, plan.request.program).c_str(), stdout);
  std::fputs(gpu ? "launch train in GPU mode\n" : "launch train in CPU mode\n", stdout);
  std::fflush(stdout);

  AgentPlan agent;
  agent.foreign = children_of_self();
  agent.signal_mask = block_all_signals();
  agent.guardian = start_guardian(agent.signal_mask);  // before gRPC has threads
  agent.server = host_rendezvous(plan);
  agent.client.address =
      agent.server ? agent.server->local_address()
                   : endpoint(plan.topology.rendezvous_address, plan.topology.rendezvous_port);
  agent.client.timeout = seconds_of(plan.request.settings, "rdzv_timeout");
  agent.node = node_of(plan, agent.server != nullptr);
  agent.grace = seconds_of(plan.request.settings, "grace");
  agent.prepare = [&plan](const Assignment& assignment) { return prepare_ranks(plan, assignment); };
  return run_agent(std::move(agent));
}

}  // namespace

int launch(const std::vector<std::string>& arguments) {
  LaunchRequest request = parse_arguments(arguments);
  switch (request.action) {
    case LaunchRequest::Action::kHelp:
      std::fputs(launch_help().c_str(), stdout);
      return 0;
    case LaunchRequest::Action::kVersion:
      std::puts(launch_version().c_str());
      return 0;
    case LaunchRequest::Action::kPrintConfig:
      std::fputs(print_options(request.settings).c_str(), stdout);
      return 0;
    case LaunchRequest::Action::kRun:
      break;
  }
  try {
    return run(std::move(request));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kTimeout) throw;
    spdlog::error("{}", error.what());
    return kExitRendezvous;
  }
}

}  // namespace fleet
