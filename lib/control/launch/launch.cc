#include "launch/launch.h"

#include <unistd.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cstdio>
#include <memory>
#include <optional>

#include "base/env.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/owned_file.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "launch/addresses.h"
#include "launch/arguments.h"
#include "launch/dialects/dialect.h"
#include "launch/doctor/preflight.h"
#include "launch/dry_run/print_plan.h"
#include "launch/environment.h"
#include "launch/job_security.h"
#include "launch/launch_plan.h"
#include "launch/log_settings.h"
#include "launch/option_rules.h"
#include "launch/rank_files.h"
#include "launch/rejoin.h"
#include "launch/rendezvous_setup.h"
#include "launch/shown_ranks.h"
#include "launch/startup_messages.h"
#include "launch/tables.h"
#include "launch/torchrun/log_tree.h"
#include "launch/torchrun/stop_signals.h"
#include "launch/torchrun/translate.h"
#include "node/agent.h"
#include "node/folder_lock.h"
#include "node/process_tree.h"
#include "node/runtime_folder.h"
#include "observe/progress.h"
#include "rendezvous/async_store_client.h"

namespace fleet {
namespace {

std::chrono::milliseconds seconds_of(const Settings& settings, const char* key) {
  return std::chrono::milliseconds(static_cast<int64_t>(settings.number(key) * 1000));
}

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
  options.timeout = seconds_of(plan.request.settings, "rdzv_timeout");
  options.security = plan.security;
  options.heartbeat_timeout = seconds_of(plan.request.settings, "heartbeat_timeout");
  options.network = !plan.topology.is_single_node();
  options.local_folder = socket_folder();
  options.connections_per_node = std::max(16, static_cast<int>(plan.devices.size()) + 2);
  return options;
}

// Hosts the rendezvous on this node after the host was lost.
std::unique_ptr<RendezvousServer> take_over(const LaunchPlan& plan, const TakeOver& turn) {
  RendezvousServerOptions options = server_options(plan);
  options.host = resolve(plan.topology.bind_address);
  options.port = turn.port;
  options.from = turn.from;
  return std::make_unique<RendezvousServer>(options);
}

}  // namespace

std::unique_ptr<RendezvousServer> host_rendezvous(const LaunchPlan& plan) {
  const Topology& topology = plan.topology;
  if (topology.hosting == Topology::Hosting::kNo) return nullptr;
  RendezvousServerOptions options = server_options(plan);
  const bool own = topology.rendezvous_address == topology.address;
  options.host = resolve(own ? topology.bind_address : topology.rendezvous_address);
  options.port = topology.rendezvous_port;
  try {
    auto server = std::make_unique<RendezvousServer>(options);
    if (options.security.open() && server->open_to_network()) {
      spdlog::warn(
          "--insecure: the rendezvous listens on {} and accepts everyone who reaches it. They can "
          "stop the job and read its store; use a network that you trust",
          endpoint(options.host, server->port()));
    }
    return server;
  } catch (const Error& error) {
    // Another node on this host may have taken the port first.
    const bool join = topology.hosting == Topology::Hosting::kIfFree;
    if (join && error.code() == ErrorCode::kUsage) return nullptr;
    throw;
  }
}

RendezvousClientOptions client_options(const LaunchPlan& plan, const RendezvousServer* server) {
  RendezvousClientOptions options;
  options.address = server
                        ? server->local_address()
                        : endpoint(plan.topology.rendezvous_address, plan.topology.rendezvous_port);
  options.timeout = seconds_of(plan.request.settings, "rdzv_timeout");
  options.heartbeat_timeout = seconds_of(plan.request.settings, "heartbeat_timeout");
  options.security = plan.security;
  if (server) options.host = server->host();
  return options;
}

namespace {

// --debug_rank.
void warn_about_debugged_rank(const LaunchPlan& plan, const Assignment& assignment,
                              const wire::SpawnRanks& spawn) {
  const auto debugged = plan.request.settings.integer("debug_rank");
  for (const wire::RankCommand& rank : spawn.ranks()) {
    if (rank.rank() != debugged || assignment.node().is_server(rank.local_rank())) continue;
    spdlog::warn(
        "rank {0} waits for a debugger: on this node run  fleetrun debug --rank {0} -- gdb --args",
        debugged);
  }
}

// --ranks.
void warn_about_missing_ranks(const LaunchPlan& plan, const Assignment& assignment) {
  std::vector<int> missing;
  for (const int rank : read_shown_ranks(plan.request.settings).ranks) {
    if (rank >= assignment.world_size()) missing.push_back(rank);
  }
  if (missing.empty() || assignment.node_rank != 0) return;
  spdlog::warn("--ranks lists {}, but this job has ranks 0 to {}", join_numbers(missing, ","),
               assignment.world_size() - 1);
}

// Claims the log folder for the lifetime of `lock`; warns if another node or job uses it.
void lock_log_folder(const LaunchPlan& plan, const Assignment& assignment,
                     std::optional<FolderLock>* lock) {
  if (*lock) return;  // by an earlier generation
  lock->emplace(plan.log_dir, "node " + std::to_string(assignment.node_rank) + " of job '" +
                                  shown_name(plan.request.settings.text("job_id")) + "' (pid " +
                                  std::to_string(::getpid()) + " on " + host_name() + ")");
  if ((*lock)->holder().empty()) return;
  spdlog::warn(
      "{}: {} also writes its logs there; give each its own folder, for example "
      "--log_dir=log/$(hostname)",
      plan.log_dir, shown_name((*lock)->holder(), 200));
}

wire::SpawnRanks prepare_ranks(const LaunchPlan& plan, const Assignment& assignment,
                               std::optional<FolderLock>* lock) {
  make_log_tree(plan, assignment);
  make_directories(plan.log_dir);
  const bool again = lock->has_value();
  lock_log_folder(plan, assignment, lock);
  // Not synced to disk: the file only helps to read logs, and a start must be fast.
  try {
    const std::string endpoints = plan.log_dir + "/endpoints.log";
    if (!is_torchrun_mode(plan.request.settings)) {
      write_owned_file(endpoints, endpoints_log(*assignment.world));
    }
  } catch (const Error& error) {
    spdlog::warn("{}", error.what());
  }
  for (const LongValue& list : long_values(assignment, rank_context(plan))) {
    replace_owned_file(list.path, list.value);
  }
  for (const Dialect* dialect : dialects_named(plan.dialects)) {
    if (dialect->write_files) dialect->write_files(assignment, rank_context(plan));
  }
  if (shows_start(plan.request.settings)) print_start(plan, assignment, again);
  wire::SpawnRanks spawn = rank_commands(plan, assignment, terminal_width(STDOUT_FILENO));
  wire::LogSettings& logs = *spawn.mutable_logs();
  logs = log_settings(plan.request.settings, assignment, spawn);
  for (wire::RankCommand& rank : *spawn.mutable_ranks()) rank.set_shows_apart(logs.errors_apart());
  const RankFileLayout files(plan.request.settings, plan.log_dir);
  *logs.mutable_output_copies() = files.copies(false, assignment.world->restarts);
  *logs.mutable_error_copies() = files.copies(true, assignment.world->restarts);
  warn_about_debugged_rank(plan, assignment, spawn);
  warn_about_missing_ranks(plan, assignment);
  return spawn;
}

// Starts the services of dialects whose ranks query their node.
std::unique_ptr<RankService> serve_ranks(const LaunchPlan& plan, boost::asio::io_context& loop,
                                         const Assignment& assignment,
                                         std::function<void(int, std::string)> send) {
  const auto dialects = dialects_named(plan.dialects);
  const bool none = std::none_of(dialects.begin(), dialects.end(),
                                 [](const Dialect* dialect) { return dialect->serve; });
  if (none) return nullptr;
  ServiceContext context{loop, assignment, rank_context(plan).service_port, nullptr,
                         std::move(send)};
  context.store = connect_async_store(
      assignment.store_address, plan.request.settings.text("job_id"), assignment.generation(),
      plan.security,
      [&loop](std::function<void()> answer) { boost::asio::post(loop, std::move(answer)); });
  return start_dialect_services(plan.dialects, context);
}

// State that lives as long as the job.
struct JobResources {
  std::optional<NodeFacts> facts;  // --preflight
  std::optional<FolderLock> logs;  // set when ranks start
};

// Callbacks of the agent while the job runs.
void add_callbacks(const LaunchPlan& plan, JobResources* resources, AgentPlan* agent) {
  agent->take_over = [&plan](const TakeOver& turn) { return take_over(plan, turn); };
  agent->serve = [&plan](boost::asio::io_context& loop, const Assignment& assignment,
                         std::function<void(int, std::string)> send) {
    return serve_ranks(plan, loop, assignment, std::move(send));
  };
  agent->prepare = [&plan, resources](const Assignment& assignment) {
    return prepare_ranks(plan, assignment, &resources->logs);
  };
  if (resources->facts) {
    agent->check = [&plan, resources](const Assignment& assignment) {
      return preflight(plan, *resources->facts, assignment);
    };
  }
}

// The facts about the job that are known before the nodes join.
JobRecord record_of(const LaunchPlan& plan, const AgentPlan& agent) {
  JobRecord record;
  record.set_job_id(agent.node.job.job_id);
  record.set_node_rank(agent.node.node_rank);
  record.set_nnodes(agent.node.job.nnodes);
  record.set_address(agent.node.address);
  const std::string network = agent.server ? agent.server->network_address() : std::string();
  record.set_rendezvous(network.empty() ? agent.client.address : network);
  record.set_log_dir(plan.log_dir);
  for (const std::string& word : plan.request.program) record.add_command(word);
  record.set_part(plan.request.settings.boolean("part"));
  return record;
}

// Rejects an unsafe FLEET_RUNTIME_DIR. Other problems do not end the job; the job record warns of
// them.
void refuse_foreign_runtime_folder() {
  try {
    make_runtime_folder();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kUsage) throw;
  }
}

int run(LaunchRequest request) {
  set_up_launch_logging(request.settings);
  LaunchPlan plan = make_launch_plan(std::move(request));
  const Settings& settings = plan.request.settings;
  if (plan.request.dry_run.wanted) {
    print_dry_run(plan);
    return 0;
  }
  warn_of_settings();
  for (const char* key : {"rdzv_port", "master"}) {
    if (!plan.topology.is_single_node() || !given_by_flag(settings, key)) continue;
    spdlog::info("the port of {} has no effect: a job of one node needs no rendezvous port",
                 settings.origin(key));
  }
  if (get_env("FLEET_RUNTIME_DIR")) refuse_foreign_runtime_folder();
  JobResources resources;
  if (settings.boolean("preflight")) resources.facts = gather_facts(plan);
  const bool part = settings.boolean("part");
  if (!part && shows_start(settings)) {
    print_configuration(plan.request,
                        plan.on_gpus() ? "launch train in GPU mode" : "launch train in CPU mode");
  }

  const CredentialsFile credentials(plan.security);
  plan.credentials = credentials.path();
  AgentPlan agent;
  agent.other_children = children_of_self();
  agent.signal_mask = block_all_signals();
  agent.guardian = start_guardian(agent.signal_mask);  // before gRPC starts threads
  rejoin_running_job(&plan);
  agent.server = host_rendezvous(plan);
  agent.client = client_options(plan, agent.server.get());
  agent.node = node_of(plan, agent.server != nullptr);
  agent.grace = seconds_of(settings, "grace");
  agent.stop_signals = stop_signals(settings);
  agent.print_verdict = !part;
  if (settings.boolean("control_pipe")) agent.control_pipe = UniqueFd(::dup(STDIN_FILENO));
  agent.record = record_of(plan, agent);
  add_callbacks(plan, &resources, &agent);
  const int code = run_agent(std::move(agent));
  if (code == 0) remove_temporary_logs(plan);
  return code;
}

// Applies --export: ranks inherit this process's environment.
void export_variables(const Settings& settings) {
  for (const std::string& variable : settings.texts("export")) {
    const size_t equals = variable.find('=');
    if (equals == std::string::npos || equals == 0) continue;
    ::setenv(variable.substr(0, equals).c_str(), variable.substr(equals + 1).c_str(), 1);
  }
}

std::string help_on(const std::string& topic, const LaunchExtras& extras) {
  if (topic.empty() || topic == "all") return launch_help(!topic.empty()) + extras.commands_help;
  const std::string help = extras.command_help ? extras.command_help(topic) : "";
  if (!help.empty()) return help;
  throw Error(ErrorCode::kUsage, "no help on '" + topic + "'", "--help",
              "see fleetrun --help for the commands and fleetrun --help all for every option");
}

const Via* chosen_via(const LaunchRequest& request, const std::vector<Via>& vias) {
  const std::string& name = request.settings.text("via");
  if (name.empty()) return nullptr;
  std::vector<std::string> names;
  for (const Via& via : vias) {
    if (via.name == name) return &via;
    names.push_back(via.name);
  }
  throw Error(
      ErrorCode::kUsage, "unknown launch method '" + name + "'", "--via",
      names.empty() ? "run the same line on every node" : "use one of " + join(names, ", "));
}

}  // namespace

int launch(const std::vector<std::string>& arguments, const LaunchExtras& extras) {
  LaunchRequest request = parse_arguments(arguments);
  if (print_if_requested(
          request, [&] { return help_on(request.help_on, extras); }, extras.completion)) {
    return 0;
  }
  const Via* via = chosen_via(request, extras.vias);
  check_options(request, ArgumentsFor::kStart);
  if (!via) export_variables(request.settings);
  if (!request.ignored.empty()) {
    set_up_logging(request.settings.text("log_level"), "fleetrun");
    spdlog::info("options without effect: {}", request.ignored);
  }
  try {
    if (!via) return run(std::move(request));
    if (!request.dry_run.wanted) return via->start(std::move(request));
    print_via_plan(via->plan(request), request.dry_run);
    return 0;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kTimeout) throw;
    spdlog::error("{}", error.what());
    return kExitRendezvous;
  }
}

}  // namespace fleet
