#include "launch/planning/launch_plan.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "base/clock.h"
#include "base/counted.h"
#include "base/env.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/owned_file.h"
#include "base/text.h"
#include "base/thread.h"
#include "launch/planning/addresses.h"
#include "launch/planning/cgroup.h"
#include "launch/planning/devices.h"
#include "launch/planning/dialects/dialect.h"
#include "launch/planning/environment.h"
#include "launch/planning/fingerprint.h"
#include "launch/planning/job_security.h"
#include "launch/planning/launch_config.h"
#include "launch/planning/log_config.h"
#include "launch/planning/program.h"
#include "launch/planning/refuse.h"
#include "launch/planning/torchrun/numa_binding.h"
#include "launch/planning/torchrun/template.h"
#include "node/end_command.h"

namespace fleet {
namespace {

// Files that the job writes to the log folder; an earlier job may have left some.
std::vector<std::string> files_of_logs(const LaunchConfig& config, const std::string& log_dir,
                                       int servers, int local_world_size) {
  std::vector<std::string> paths;
  for (const char* name : {"/.fleetrun", "/endpoints.log", "/verdict.json"}) {
    paths.push_back(log_dir + name);
  }
  if (!config.end_command.empty()) paths.push_back(log_dir + kEndCommandLog);
  const RankFileLayout files(config, log_dir);
  // Last, because their folder is absolute: neighbours of one folder are checked together.
  std::vector<std::string> failures;
  for (int rank = 0; rank < local_world_size; ++rank) {
    RankFiles own = files.of(rank, servers, 0);
    if (!own.errors.empty() && own.errors != own.output) paths.push_back(std::move(own.errors));
    if (!own.output.empty()) paths.push_back(std::move(own.output));
    failures.push_back(std::move(own.failure));
  }
  std::ranges::move(failures, std::back_inserter(paths));
  return paths;
}

// The logs must be writable before anything starts. Creates nothing, so that a rejected start
// leaves no empty logs.
void check_logs(const LaunchConfig& config, const std::string& log_dir, int servers,
                int local_world_size) {
  try {
    const std::string folder = nearest_folder(log_dir);
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

// -1: none.
int debugged_rank(const LaunchConfig& config, int world_size) {
  const int rank = config.debug_rank.value.value_or(-1);
  check_rank(rank, world_size, config.debug_rank.origin);
  return rank;
}

}  // namespace

void check_rank(int rank, int world_size, const std::string& origin) {
  if (rank < world_size) return;
  refuse("this job has no rank " + std::to_string(rank), origin,
         "this job has " + counted(world_size, "rank") + ", numbered from 0");
}

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

namespace {

// --numa_binding.
void bind_near_gpus(const LaunchPlan& plan, std::vector<CorePlan>* cores) {
  const std::optional<NumaBinding>& binding = plan.config().numa_binding;
  if (!binding) return;
  const NumaSystem system = numa_system(available_cores());
  const GpuInventory gpus = find_gpus();
  for (size_t rank = 0; rank < cores->size(); ++rank) {
    const bool has_gpu = rank < plan.ranks.devices.size() && !plan.ranks.devices[rank].empty();
    const int visible = has_gpu ? plan.ranks.devices[rank].front() : static_cast<int>(rank);
    CorePlan& own = (*cores)[rank];
    own.cores = cores_near_gpu(system, *binding, number_of_visible_gpu(gpus, visible));
  }
  // Ranks whose GPUs are near the same cores share them.
  for (CorePlan& own : *cores) {
    const auto sharing = std::ranges::count(*cores, own.cores, &CorePlan::cores);
    const int share = static_cast<int>(own.cores.size()) / static_cast<int>(sharing);
    if (own.threads > 1) own.threads = std::max(1, share);
  }
}

// Consecutive cores are not near the GPU of a rank on a machine of several NUMA nodes.
void unpin_from_far_gpus(const LaunchPlan& plan, std::vector<CorePlan>* cores) {
  if (plan.config().numa_binding || numa_nodes() < 2) return;
  for (size_t rank = 0; rank < cores->size() && rank < plan.ranks.devices.size(); ++rank) {
    if (!plan.ranks.devices[rank].empty()) (*cores)[rank].cores.clear();
  }
}

// Plans the nodes, the ranks and their command. Does not take the request.
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
    plan.ranks.devices.resize(plan.local_roles.entries.size());
  } else {
    plan.ranks = local_ranks(config, find_gpus(), plan.topology.listed_devices);
  }
  plan.log_dir = log_folder(config);
  if (!request.program.empty()) {
    plan.command = rank_command(request.program, default_worker_path(), config.program_kind);
    plan.trains = plan.command.front() == default_worker_path();
  }
  if (plan.trains) check_dialects_of_worker(config.dialects);
  return plan;
}

}  // namespace

LaunchPlan make_launch_plan(LaunchRequest request) {
  LaunchPlan plan = plan_ranks(request);
  const LaunchConfig& config = request.config;
  if (plan.trains) check_job_file(plan.command);
  check_logs(config, plan.log_dir, plan.local_roles.servers, plan.ranks.local_world_size);
  check_log_settings(config.logs, plan.ranks.local_world_size);
  plan.security = resolve_job_security(config.security, plan.topology, !request.dry_run.wanted);
  plan.request = std::move(request);
  std::vector<CorePlan> cores(static_cast<size_t>(plan.ranks.local_world_size));
  bind_near_gpus(plan, &cores);  // rejects an impossible binding
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
  for (size_t rank = 0; rank < plan.ports.size(); ++rank) {
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

RankContext rank_context(const LaunchPlan& plan) {
  const LaunchConfig& config = plan.config();
  RankContext context;
  context.job_id = config.job_id.value;
  context.log_dir = plan.log_dir;
  context.log_level = config.logs.level;
  context.credentials = plan.credentials;
  context.max_restarts = config.restarts.max_restarts;
  if (config.roles.wanted) context.with_gloo = std::to_string(config.roles.with_gloo);
  context.dialects = config.dialects;
  context.stop_signals = signal_names(config.stop_signals);
  context.virtual_local_rank = config.virtual_local_rank;
  if (plan.service_port) context.service_port = plan.service_port->port();
  return context;
}

namespace {

// Loopback addresses mean this host, so such nodes share its cores. Other names are not resolved,
// because a job may have thousands.
std::vector<CorePlan> split_cores(const Assignment& assignment) {
  const auto here = [](const wire::Node& node) {
    return node.address() == "localhost" || is_loopback(node.address());
  };
  const wire::Node& node = assignment.node();
  int first = 0, on_host = node.local_world_size();
  if (here(node)) {
    on_host = 0;
    for (const wire::Node& other : assignment.world->nodes()) {
      if (!here(other)) continue;
      if (other.node_rank() == node.node_rank()) first = on_host;
      on_host += other.local_world_size();
    }
  }
  return plan_cores(available_cores(), first, node.local_world_size(), on_host,
                    get_env("OMP_NUM_THREADS").has_value(), cgroup_limits().cpus);
}

// torchrun pins no rank, and gives each of several ranks one thread.
std::vector<CorePlan> torchrun_cores(int local_world_size) {
  const bool limits = local_world_size > 1 && !get_env("OMP_NUM_THREADS");
  return std::vector<CorePlan>(static_cast<size_t>(local_world_size), CorePlan{limits ? 1 : 0, {}});
}

}  // namespace

std::vector<CorePlan> cores_of_ranks(const LaunchPlan& plan, const Assignment& assignment) {
  std::vector<CorePlan> cores = plan.config().as_torchrun
                                    ? torchrun_cores(assignment.node().local_world_size())
                                    : split_cores(assignment);
  bind_near_gpus(plan, &cores);
  unpin_from_far_gpus(plan, &cores);
  return cores;
}

RankCommands::RankCommands(const LaunchPlan& plan, const Assignment& assignment, int terminal_width)
    : plan_(plan),
      context_(with_lists(assignment, rank_context(plan))),
      shown_(plan.config().logs.shown),
      files_(plan.config(), plan.log_dir),
      terminal_width_(terminal_width),
      debugged_(debugged_rank(plan.config(), assignment.world_size())) {
  context_.interface = interface_of(resolve(plan.topology.bind_address));
}

// The prefix of a rank's lines on the console; "" for the default.
static std::string line_label(const LaunchConfig& config, const wire::Node& node, int local_rank,
                              int rank) {
  const std::string wanted = config.logs.label.value_or("");
  if (wanted.empty() && !config.as_torchrun) return {};
  const std::string local = std::to_string(local_rank - node.servers());
  const std::string host = node.hostname().substr(0, node.hostname().find('.'));
  return fill_template(wanted.empty() ? "[${role_name}${local_rank}]:" : wanted,
                       {{"role_name", node.role()},
                        {"local_rank", local},
                        {"rank", std::to_string(rank)},
                        {"hostname", host}});
}

wire::RankCommand RankCommands::of(const Assignment& assignment, int local_rank,
                                   const CorePlan& cores) const {
  const LaunchConfig& config = plan_.config();
  const wire::Node& node = assignment.node();
  const bool server = is_server(node, local_rank);
  wire::RankCommand rank;
  rank.set_local_rank(local_rank);
  rank.set_rank(rank_of(node, local_rank));
  std::vector<std::string> argv = plan_.command;
  if (config.as_torchrun) {
    for (std::string& word : argv) {
      word = fill_template(word, {{"local_rank", std::to_string(local_rank)}});
    }
  }
  const bool debugged = !server && rank.rank() == debugged_;
  if (debugged) argv = placeholder_command(argv);
  rank.mutable_argv()->Add(argv.begin(), argv.end());
  rank.mutable_cores()->Add(cores.cores.begin(), cores.cores.end());
  // Only fleet-worker may draw a progress bar; other programs write to a pipe.
  const bool draws_bar =
      plan_.trains && local_rank == 0 && !shown_.chosen && !config.logs.stamp_console;
  rank.set_draws_bar(draws_bar && terminal_width_ > 0);
  RankContext context = context_;
  context.threads = cores.threads;
  if (node.address() != plan_.topology.address) context.interface.clear();
  context.terminal_width = draws_bar ? terminal_width_ : 0;
  const RankFiles files = files_.of(local_rank, node.servers(), assignment.world->restarts());
  rank.set_log_path(files.output);
  rank.set_splits_streams(files.output != files.errors);
  if (rank.splits_streams()) rank.set_error_log_path(files.errors);
  context.error_file = files.failure;
  rank.set_error_file(files.failure);
  if (context.virtual_local_rank) {
    const std::vector<int> devices = devices_of(node, local_rank);
    context.visible_devices =
        visible_devices_of(find_gpus(), devices.empty() ? std::vector<int>{local_rank} : devices);
  }
  Variables environment = rank_environment(assignment, local_rank, context);
  for (std::string& name : removed_environment(assignment, local_rank, environment)) {
    rank.add_removed(std::move(name));
  }
  for (auto& [name, value] : environment) {
    add_value(std::move(name), std::move(value), rank.mutable_environment());
  }
  rank.set_service_socket(any_dialect(config.dialects, &Dialect::needs_socket));
  if (server) return rank;
  rank.set_shown_streams(shown_.streams(rank.rank(), local_rank - node.servers()));
  rank.set_labelled_streams(shown_.labels.of(local_rank - node.servers()));
  rank.set_label(line_label(config, node, local_rank, rank.rank()));
  if (debugged) return rank;  // it waits for the user
  // Servers wait for trainers, so only trainers are checked for progress.
  rank.set_expects_progress(true);
  return rank;
}

wire::SpawnRanks rank_commands(const LaunchPlan& plan, const Assignment& assignment,
                               int terminal_width) {
  const std::vector<CorePlan> cores = cores_of_ranks(plan, assignment);
  const RankCommands commands(plan, assignment, terminal_width);
  wire::SpawnRanks spawn;
  *spawn.mutable_settings() = plan.config().guardian;
  for (int local_rank = 0; local_rank < assignment.node().local_world_size(); ++local_rank) {
    *spawn.add_ranks() =
        commands.of(assignment, local_rank, cores[static_cast<size_t>(local_rank)]);
  }
  return spawn;
}

}  // namespace fleet
