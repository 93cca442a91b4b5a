#include "launch/plan.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/clock.h"
#include "base/env.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "base/thread.h"
#include "launch/addresses.h"
#include "launch/devices.h"
#include "launch/environment.h"
#include "launch/program.h"
#include "launch/run_to_end.h"

namespace fleet {
namespace {

std::string log_path(const std::string& log_dir, size_t local_rank) {
  return log_dir + "/workerlog." + std::to_string(local_rank);
}

// The folder, or where it would be made: the nearest one that exists.
std::string existing_folder(const std::string& path) {
  std::filesystem::path folder = std::filesystem::absolute(path);
  while (!std::filesystem::exists(folder) && folder.has_relative_path()) {
    folder = folder.parent_path();
  }
  return folder.string();
}

// The logs must be writable before anything is started. Nothing is made here: a start that is
// refused leaves no empty logs.
void check_logs(const Settings& settings, const std::string& log_dir, size_t ranks) {
  const auto refuse = [&](const std::string& path, int reason) {
    throw Error(ErrorCode::kUsage, "logs cannot be written: " + path + ": " + std::strerror(reason),
                settings.origin("log_dir") + " " + log_dir, "choose another --log_dir");
  };
  const std::string folder = existing_folder(log_dir);
  if (!std::filesystem::is_directory(folder)) refuse(folder, ENOTDIR);
  if (::access(folder.c_str(), W_OK | X_OK) != 0) refuse(folder, errno);
  for (size_t rank = 0; rank < ranks; ++rank) {
    const std::string path = log_path(log_dir, rank);
    const UniqueFd file(::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
    if (!file && errno != ENOENT) refuse(path, errno);
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

}  // namespace

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
  plan.trains = plan.command.front() == worker_beside_launcher();
  if (plan.trains) check_job_file(plan.command);
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

std::vector<RankCommand> rank_commands(const LaunchPlan& plan, const Assignment& assignment,
                                       int terminal_width) {
  const Settings& settings = plan.request.settings;
  const std::vector<CorePlan> cores = cores_of_ranks(assignment);
  std::vector<RankCommand> ranks;
  const auto nproc = static_cast<size_t>(assignment.node().nproc());
  for (size_t local_rank = 0; local_rank < nproc; ++local_rank) {
    RankCommand rank;
    rank.local_rank = static_cast<int>(local_rank);
    rank.argv = plan.command;
    // A bar of other programs is their own affair: they see a pipe.
    const bool draws_bar = plan.trains && local_rank == 0;
    rank.environment =
        rank_environment(assignment, rank.local_rank,
                         {settings.text("job_id"), plan.log_dir, settings.text("log_level"),
                          cores[local_rank].threads, draws_bar ? terminal_width : 0});
    rank.removed = removed_environment();
    rank.cores = cores[local_rank].cores;
    rank.log_path = log_path(plan.log_dir, local_rank);
    rank.console = local_rank == 0;
    ranks.push_back(std::move(rank));
  }
  return ranks;
}

}  // namespace fleet
