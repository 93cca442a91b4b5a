#include "launch/planning/launch_plan.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "base/clock.h"
#include "base/counted.h"
#include "base/error.h"
#include "base/log.h"
#include "base/owned_file.h"
#include "base/proc_number.h"
#include "base/text.h"
#include "launch/planning/addresses.h"
#include "launch/planning/cores.h"
#include "launch/planning/devices.h"
#include "launch/planning/dialects/dialect.h"
#include "launch/planning/launch_config.h"
#include "launch/planning/program.h"
#include "launch/planning/rank_commands.h"
#include "launch/planning/refuse.h"
#include "node/end_command.h"

namespace fleet {
namespace {

// Files that the job writes to the log folder; an earlier job may have left some.
std::vector<std::string> files_of_logs(const LaunchConfig& config, const std::string& log_dir,
                                       int servers, int local_world_size) {
  std::vector<std::string> paths;
  for (const char* name :
       {"/.fleetrun", "/endpoints.log", "/environment.log", "/verdict.json", kMetricsFile}) {
    paths.push_back(log_dir + name);
  }
  if (!config.end_command.empty()) paths.push_back(log_dir + kEndCommandLog);
  const RankFileLayout files(config, log_dir);
  // Last, because their folder is absolute: neighbours of one folder are checked together.
  std::vector<std::string> absolute;
  for (int rank = 0; rank < local_world_size; ++rank) {
    RankFiles own = files.of(rank, servers, 0);
    if (!own.errors.empty() && own.errors != own.output) paths.push_back(std::move(own.errors));
    if (!own.output.empty()) paths.push_back(std::move(own.output));
    absolute.push_back(std::move(own.failure));
    absolute.push_back(std::move(own.steps));
  }
  std::ranges::move(absolute, std::back_inserter(paths));
  return paths;
}

// The logs must be writable before anything starts. Creates nothing, so that a rejected start
// leaves no empty logs.
void check_logs(const LaunchConfig& config, const std::string& log_dir, int servers,
                int local_world_size) {
  const std::string folder = nearest_folder(log_dir);
  try {
    const UniqueFd open = open_owned_folder(folder);
    if (::access(folder.c_str(), W_OK | X_OK) != 0) throw_errno("cannot be written", folder);
    check_owned_files(files_of_logs(config, log_dir, servers, local_world_size));
  } catch (const Error& error) {
    refuse("cannot write logs: " + error.where() + ": " + error.failure(),
           config.logs.folder.with(log_dir), "choose another --log_dir");
  }
}

void reserve_ports(LaunchPlan* plan) {
  const Topology& topology = plan->topology;
  const int first = topology.start_port;
  const auto& entries = plan->local_roles.entries;
  const auto reserve = [&](int offset) {
    const auto index = static_cast<size_t>(offset);
    if (index < entries.size() && entries[index].port > 0) {
      return ReservedPort::exactly(topology.bind_address, entries[index].port,
                                   offset < plan->local_roles.servers ? "--servers" : "--workers");
    }
    return first > 0 ? ReservedPort::exactly(topology.bind_address, first + offset, "--start_port")
                     : ReservedPort::any(topology.bind_address);
  };
  const int local_world_size = plan->ranks.local_world_size;
  if (first + local_world_size > 65535) {
    refuse("the ports from " + std::to_string(first) + " on do not suffice for " +
               counted(local_world_size, "rank") + " and MASTER_PORT",
           "--start_port", "choose a smaller port");
  }
  for (int rank = 0; rank < local_world_size; ++rank) plan->ports.push_back(reserve(rank));
  if (any_dialect(plan->config().dialects, &Dialect::needs_port)) {
    plan->service_port = std::make_unique<ReservedPort>(ReservedPort::any("127.0.0.1"));
  }
  const bool restarts = plan->config().restarts.max_restarts > 0;
  if (topology.nnodes > 1 && restarts && topology.hosting != Topology::Hosting::kYes) {
    reserve_failover_port(plan);
  }
  // Any node may become node 0 if ranks are assigned by arrival, or if node 0 may be lost.
  if (topology.node_rank > 0 && !restarts) return;
  const int gloo_port = plan->config().roles.gloo_port;
  const bool of_roles = gloo_port > 0;
  const int port = of_roles ? gloo_port : topology.master_port;
  plan->master_port = std::make_unique<ReservedPort>(
      port > 0 ? ReservedPort::exactly(topology.bind_address, port,
                                       of_roles ? "--gloo_port" : "--master_port")
               : reserve(local_world_size));
}

// Ranks of a job file train on the CPUs only if the machine shows no GPU.
void check_gpus_of_job_file(const LaunchConfig& config, const LocalRanks& ranks) {
  const int gpus = visible_gpu_count(find_gpus());
  if (gpus == 0 || !ranks.devices[0].empty()) return;
  refuse(counted(ranks.local_world_size, "rank") + " of a job file cannot share " +
             counted(gpus, "GPU"),
         config.local_world_size.origin,
         "start fewer; or set CUDA_VISIBLE_DEVICES= to run on the CPUs");
}

// Plans the nodes, the ranks and their command. Leaves the request unchanged.
LaunchPlan plan_ranks(const LaunchRequest& request) {
  LaunchPlan plan;
  const LaunchConfig& config = request.config;
  const HostFacts host = host_facts();
  wait_for_master_name(
      config, host, monotonic_seconds, [] { ::usleep(250'000); },
      [](const std::string& line) { spdlog::warn("{}", line); });
  plan.topology = resolve_topology(config, host);
  if (config.roles.wanted) {
    plan.local_roles = local_roles(config.roles, plan.topology.address);
    plan.ranks.local_world_size = static_cast<int>(plan.local_roles.entries.size());
    const int servers = plan.local_roles.servers;
    plan.ranks.devices =
        devices_of_roles(config, servers, plan.ranks.local_world_size - servers, find_gpus());
  } else {
    plan.ranks = local_ranks(config, find_gpus(), plan.topology.listed_devices);
  }
  plan.log_dir = log_folder(config);
  if (!request.program.empty()) {
    plan.command = rank_command(request.program, default_worker_path(), config.program_kind);
    plan.trains = plan.command.front() == default_worker_path();
  }
  if (plan.trains) check_dialects_of_worker(config.dialects);
  if (plan.trains && !config.roles.wanted) check_gpus_of_job_file(config, plan.ranks);
  return plan;
}

// The trainers and servers of all nodes, which have as many of each unless they are listed.
PlannedRanks planned_trainers(const LaunchPlan& plan, const Roles& roles) {
  const int nodes = plan.topology.nnodes;
  const auto local = static_cast<int>(plan.local_roles.entries.size()) - plan.local_roles.servers;
  PlannedRanks ranks{.world_size = local * nodes,
                     .local_world_size = local,
                     .nnodes = nodes,
                     .servers = plan.local_roles.servers * nodes,
                     .devices = local > 0 ? plan.ranks.devices.back() : std::vector<int>()};
  if (!roles.listed()) return ranks;
  ranks.world_size = static_cast<int>(roles.trainers.size());
  ranks.servers = static_cast<int>(roles.servers.size());
  return ranks;
}

// Other nodes have their own number of ranks, unless this is the only node.
PlannedRanks planned_ranks(const LaunchPlan& plan) {
  const Topology& topology = plan.topology;
  const int local = plan.ranks.local_world_size;
  return {.world_size = local * topology.nnodes,
          .local_world_size = local,
          .nnodes = topology.nnodes,
          .devices = plan.ranks.devices.front(),
          .exact = topology.is_single_node()};
}

// This process's command line, quoted for a shell.
std::string own_command_line() {
  std::string line;
  std::istringstream words(read_file("/proc/self/cmdline"));
  for (std::string word; std::getline(words, word, '\0');) {
    line += (line.empty() ? "" : " ") + shell_word(word);
  }
  return line;
}

// On a shared home the other nodes read the same file. Otherwise the user must copy it. Only a
// terminal shows the secret, logs do not.
void announce_secret(const Security& security) {
  spdlog::info("created the secret of your jobs: {}. Nodes without this folder need a copy",
               security.origin);
  if (::isatty(STDERR_FILENO) != 1) return;
  std::fprintf(stderr, "of it, or start them with this line:\n  %s=%s %s\n", kEnvJobSecret,
               security.secret.c_str(), own_command_line().c_str());
}

Security shared_secret(const SecurityConfig& config, const Topology& topology, bool make) {
  const bool hosts = topology.hosting == Topology::Hosting::kYes;
  try {
    const FoundSecret found = find_secret(config.secret_file.value, make);
    if (found.made && hosts) announce_secret(found.security);
    return found.security;
  } catch (const Error&) {
    // No secret was given and none can be stored: make one for this job, if a terminal can show it.
    const bool given = config.secret_file.given() || ::getenv(kEnvJobSecret);
    if (!given && !make) return {};  // --dry_run: a start would make it
    if (given || !hosts || ::isatty(STDERR_FILENO) != 1) throw;
    const Security made{new_secret(), true, "made for this job"};
    std::fprintf(stderr, "start the other nodes with this line:\n  %s=%s %s\n", kEnvJobSecret,
                 made.secret.c_str(), own_command_line().c_str());
    return made;
  }
}

}  // namespace

std::string nearest_folder(const std::string& path) {
  std::error_code gone;
  std::filesystem::path folder = std::filesystem::absolute(path, gone);
  if (gone) refuse("the working directory no longer exists", {}, "cd to another one");
  std::error_code hidden;  // set for a folder that cannot be read
  while (!std::filesystem::exists(folder, hidden) && !hidden && folder.has_relative_path()) {
    folder = folder.parent_path();
  }
  return folder.string();
}

LaunchPlan make_launch_plan(LaunchRequest request) {
  LaunchPlan plan = plan_ranks(request);
  const LaunchConfig& config = request.config;
  const bool roles = config.roles.wanted;
  if (plan.trains) {
    check_job_file(plan.command,
                   roles ? planned_trainers(plan, config.roles) : planned_ranks(plan));
  }
  check_logs(config, plan.log_dir, plan.local_roles.servers, plan.ranks.local_world_size);
  check_log_settings(config.logs, plan.ranks.local_world_size);
  plan.security = resolve_job_security(config.security, plan.topology, !request.dry_run.wanted);
  plan.request = std::move(request);
  check_numa_binding(plan.config(), plan.ranks);
  reserve_ports(&plan);
  return plan;
}

LaunchPlan make_doctor_plan(LaunchRequest request) {
  LaunchPlan plan = plan_ranks(request);
  plan.doctor = true;
  plan.security = resolve_job_security(request.config.security, plan.topology, true);
  const Topology& topology = plan.topology;
  try {
    plan.ports.push_back(
        topology.start_port > 0
            ? ReservedPort::exactly(topology.bind_address, topology.start_port, "--start_port")
            : ReservedPort::any(topology.bind_address));
  } catch (const Error&) {
    if (request.config.nodes.start_port.by_flag()) throw;
    plan.ports.push_back(ReservedPort::any(topology.bind_address));
  }
  plan.request = std::move(request);
  return plan;
}

// Prefers the port of the host, which firewalls already allow.
void reserve_failover_port(LaunchPlan* plan) {
  const Topology& topology = plan->topology;
  try {
    plan->failover_port = std::make_unique<ReservedPort>(
        ReservedPort::exactly(topology.bind_address, topology.rendezvous_port, "--rdzv_port"));
  } catch (const Error&) {
    plan->failover_port = std::make_unique<ReservedPort>(ReservedPort::any(topology.bind_address));
  }
}

Security resolve_job_security(const SecurityConfig& config, const Topology& topology, bool make) {
  if (config.insecure) {
    if (config.secret_file.given()) {
      refuse("it contradicts --insecure", "--secret_file", "give only one of them");
    }
    return {};
  }
  if (!topology.is_single_node()) return shared_secret(config, topology, make);
  // A single-node job's Unix socket checks the peer's user. A bad file is still an error.
  const std::string& file = config.secret_file.value;
  if (!file.empty()) read_secret(file);
  return {};
}

CredentialsFile::CredentialsFile(const Security& security) {
  if (security.open()) return;
  memory_ = UniqueFd(::memfd_create("fleetrun credentials", MFD_CLOEXEC));
  if (!memory_) throw_errno("cannot allocate memory for the ranks' credentials");
  const std::string text = to_text(security);
  if (::fchmod(memory_.get(), 0400) != 0 ||
      ::write(memory_.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    throw_errno("cannot store the ranks' credentials");
  }
  path_ = "/proc/" + std::to_string(own_proc_number()) + "/fd/" + std::to_string(memory_.get());
}

}  // namespace fleet
