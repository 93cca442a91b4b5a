#include "launch/starting/start_job.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <optional>
#include <set>

#include "base/counted.h"
#include "base/env.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/owned_file.h"
#include "base/terminal_text.h"
#include "base/terminal_width.h"
#include "launch/planning/addresses.h"
#include "launch/planning/dialects/dialect.h"
#include "launch/planning/environment.h"
#include "launch/planning/rank_commands.h"
#include "launch/planning/refuse.h"
#include "launch/starting/metrics_server.h"
#include "launch/starting/shared_console.h"
#include "launch/starting/startup_messages.h"
#include "node/log_file.h"
#include "node/process_tree.h"
#include "node/runtime_folder.h"
#include "observe/progress.h"
#include "rendezvous/store_client.h"
#include "transport/event_loop.h"

namespace fleet {
namespace {

// Creates the parent folder. Does not accept one that another user created in a world-writable
// folder.
void make_private_parent(const LaunchPlan& plan) {
  const std::string parent = temporary_parent(plan.log_dir);
  if (::mkdir(parent.c_str(), 0700) == 0 || std::filesystem::exists(plan.log_dir)) return;
  refuse(std::string("cannot create the folder: ") + std::strerror(errno), parent,
         "choose a folder with --log_dir, or set TMPDIR");
}

// Creates the log folders of torchrun for this node's ranks: FOLDER/attempt_K/N. A temporary folder
// is accessible to this user only.
void make_log_tree(const LaunchPlan& plan, const Assignment& assignment) {
  const LaunchConfig& config = plan.config();
  if (!config.as_torchrun) return;
  if (is_temporary_log_folder(config)) make_private_parent(plan);
  const RankFileLayout files(config, plan.log_dir);
  const wire::Node& node = assignment.node();
  for (int rank = 0; rank < node.local_world_size(); ++rank) {
    const std::filesystem::path failure =
        files.of(rank, node.servers(), assignment.world->restarts()).failure;
    make_directories(failure.parent_path().string());
  }
}

// After a success, removes a temporary tree that no option requested.
void remove_temporary_logs(const LaunchPlan& plan) {
  const ShownRanks& shown = plan.config().logs.shown;
  const bool wanted = shown.tee.any() || shown.redirects.any();
  if (!is_temporary_log_folder(plan.config()) || wanted) return;
  std::error_code ignored;
  std::filesystem::remove_all(temporary_parent(plan.log_dir), ignored);
}

void warn_about_debugged_rank(const LaunchPlan& plan, const Assignment& assignment,
                              const wire::SpawnRanks& spawn) {
  const int debugged = plan.config().debug_rank.value.value_or(-1);
  for (const wire::RankCommand& rank : spawn.ranks()) {
    if (rank.rank() != debugged || is_server(assignment.node(), rank.local_rank())) continue;
    spdlog::warn(
        "rank {0} waits for a debugger: on this node run  fleetrun debug --rank {0} -- gdb --args",
        debugged);
  }
}

void warn_about_missing_ranks(const LaunchPlan& plan, const Assignment& assignment) {
  std::vector<int> missing;
  for (const int rank : plan.config().logs.shown.ranks) {
    if (rank >= assignment.world_size()) missing.push_back(rank);
  }
  if (missing.empty() || assignment.node_rank != 0) return;
  spdlog::warn("--ranks lists {}, but this job has {}, numbered from 0", join_numbers(missing, ","),
               counted(assignment.world_size(), "rank"));
}

// Claims the log folder for the lifetime of `lock`; warns if another node or job uses it.
void lock_log_folder(const LaunchPlan& plan, const Assignment& assignment,
                     std::optional<FolderLock>* lock) {
  if (*lock) return;  // by an earlier generation
  lock->emplace(plan.log_dir, "node " + std::to_string(assignment.node_rank) + " of job '" +
                                  shown_name(plan.config().job_id.value) + "' (pid " +
                                  std::to_string(::getpid()) + " on " + host_name() + ")");
  if ((*lock)->holder().empty()) return;
  spdlog::warn("{}", shared_logs_warning(plan.log_dir, (*lock)->holder(), assignment.node_rank,
                                         shown_name(plan.config().job_id.value), get_env));
}

// State that lasts from the first generation on.
struct Run {
  std::optional<FolderLock> logs;  // held until the job ends
  std::chrono::steady_clock::time_point began;
  bool speaks = false;             // this node prints what concerns the whole job
  bool has_configuration = false;  // printed
};

// Not synced to disk: the files only help to read logs, and a start must be fast.
void write_start_files(const LaunchPlan& plan, const Assignment& assignment) {
  const auto write = [&](const std::string& name, const std::string& content) {
    try {
      write_owned_file(plan.log_dir + "/" + name, content);
    } catch (const Error& error) {
      spdlog::warn("{}", error.what());
    }
  };
  if (!plan.config().as_torchrun) write("endpoints.log", endpoints_log(*assignment.world));
  write(kEnvironmentLog, environment_log(plan, assignment));
}

void show_configuration(const LaunchPlan& plan, Run* run) {
  if (!plan.config().part && !run->has_configuration) {
    print_configuration(plan.request, mode_line(plan));
  }
  run->has_configuration = true;
}

wire::SpawnRanks prepare_ranks(const LaunchPlan& plan, const Assignment& assignment, Run* run) {
  make_log_tree(plan, assignment);
  make_directories(plan.log_dir);
  const bool again = run->logs.has_value();
  if (!again) run->began = std::chrono::steady_clock::now();
  lock_log_folder(plan, assignment, &run->logs);
  write_start_files(plan, assignment);
  for (const LongValue& list : long_values(assignment, rank_context(plan))) {
    replace_owned_file(list.path, list.value);
  }
  for (const Dialect* dialect : dialects_named(plan.config().dialects)) {
    if (dialect->write_files) dialect->write_files(assignment, rank_context(plan));
  }
  run->speaks = speaks_for_job(console_facts(plan, assignment));
  if (run->speaks) show_configuration(plan, run);
  print_start(plan, assignment, again, run->speaks);
  wire::SpawnRanks spawn = rank_commands(plan, assignment, terminal_width(STDOUT_FILENO));
  warn_about_debugged_rank(plan, assignment, spawn);
  warn_about_missing_ranks(plan, assignment);
  return spawn;
}

// Starts the services of dialects whose ranks query their node.
std::unique_ptr<RankService> serve_ranks(const LaunchPlan& plan, EventLoop& loop,
                                         const Assignment& assignment,
                                         std::function<void(int, std::string)> send) {
  if (!std::ranges::any_of(dialects_named(plan.config().dialects), &Dialect::serve)) return nullptr;
  ServiceContext context{loop, assignment, rank_context(plan).service_port, nullptr,
                         std::move(send)};
  context.store = connect_async_store(
      assignment.store_address, plan.config().job_id.value, assignment.generation(), plan.security,
      [&loop](std::function<void()> answer) { loop.post(std::move(answer)); });
  return start_dialect_services(plan.config().dialects, context);
}

// Callbacks of the agent while the job runs.
void add_callbacks(const LaunchPlan& plan, Run* run, AgentPlan* agent) {
  agent->take_over = [&plan](const TakeOver& turn) { return take_over(plan, turn); };
  agent->serve = [&plan](EventLoop& loop, const Assignment& assignment,
                         std::function<void(int, std::string)> send) {
    return serve_ranks(plan, loop, assignment, std::move(send));
  };
  if (plan.config().metrics.wanted()) {
    agent->observe = [&plan](EventLoop& loop, AskLive ask) {
      return serve_metrics(plan.config().metrics, loop, std::move(ask));
    };
  }
  agent->prepare = [&plan, run](const Assignment& assignment) {
    return prepare_ranks(plan, assignment, run);
  };
  agent->succeeded = [&plan, run] {
    if (run->speaks) print_success(plan, run->began, std::chrono::steady_clock::now());
  };
}

// The facts about the job that are known before the nodes join.
JobRecord record_of(const LaunchPlan& plan, const AgentPlan& agent) {
  JobRecord record;
  const wire::Join& join = agent.join;
  record.set_job_id(join.job().job_id());
  record.set_node_rank(join.has_node_rank() ? join.node_rank() : -1);
  record.set_nnodes(join.job().nnodes());
  record.set_address(join.node().address());
  const std::string network = agent.server ? agent.server->network_address() : std::string();
  record.set_rendezvous(network.empty() ? agent.client.address : network);
  record.set_log_dir(plan.log_dir);
  for (const std::string& word : plan.request.program) record.add_command(word);
  record.set_part(plan.config().part);
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

void note_unused_port(const LaunchPlan& plan) {
  if (!plan.topology.is_single_node()) return;
  const NodesConfig& nodes = plan.config().nodes;
  const std::set<std::string> origins = {nodes.rendezvous_port.origin, nodes.master.origin};
  for (const std::string& origin : origins) {
    if (!origin.starts_with("-")) continue;
    spdlog::info("the port of {} has no effect: a job of one node needs no rendezvous port",
                 origin);
  }
}

}  // namespace

int start_job(LaunchPlan* started, std::function<std::string(const Assignment&)> check) {
  LaunchPlan& plan = *started;
  const LaunchConfig& config = plan.config();
  note_unused_port(plan);
  if (get_env("FLEET_RUNTIME_DIR")) refuse_foreign_runtime_folder();
  Run run;
  // Other nodes do not know yet whether another one prints it.
  if (plan.topology.is_single_node() || plan.topology.node_rank == 0) {
    show_configuration(plan, &run);
  }

  const CredentialsFile credentials(plan.security);
  plan.credentials = credentials.path();
  AgentPlan agent;
  agent.other_children = children_of_self();
  agent.signal_mask = block_all_signals();
  // Before gRPC starts threads.
  agent.guardian = start_guardian(agent.signal_mask, config.job_id.value);
  rejoin_running_job(&plan);
  agent.server = host_rendezvous(plan);
  agent.client = client_options(plan, agent.server.get());
  agent.join = join_of(plan, agent.server != nullptr);
  agent.grace = config.grace;
  agent.stop_signals = config.stop_signals;
  agent.print_verdict = !config.part;
  agent.messages = {.colors = wants_colors(STDERR_FILENO),
                    .brief = config.logs.start != StartStyle::kTable,
                    .shown = shown_output(plan)};
  agent.end_command = config.end_command;
  if (config.control_pipe) agent.control_pipe = UniqueFd(::dup(STDIN_FILENO));
  agent.record = record_of(plan, agent);
  add_callbacks(plan, &run, &agent);
  agent.check = std::move(check);
  const int code = run_agent(std::move(agent));
  if (code == 0) remove_temporary_logs(plan);
  return code;
}

}  // namespace fleet
