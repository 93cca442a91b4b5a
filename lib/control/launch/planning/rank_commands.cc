#include "launch/planning/rank_commands.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <random>

#include "base/counted.h"
#include "base/env.h"
#include "base/file_name.h"
#include "base/home_folder.h"
#include "launch/planning/addresses.h"
#include "launch/planning/devices.h"
#include "launch/planning/dialects/dialect.h"
#include "launch/planning/program.h"
#include "launch/planning/refuse.h"

namespace fleet {
namespace {

// A random part for unique names.
std::string random_suffix() {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz0123456789";
  std::random_device device;
  std::string word;
  for (int i = 0; i < 8; ++i) word += kLetters[device() % kLetters.size()];
  return word;
}

bool is_writable_folder(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
         ::access(path.c_str(), W_OK | X_OK) == 0;
}

// As Python's tempfile, which torchrun uses. Slurm's TMPDIR may exist on one node only.
std::string temporary_folder() {
  std::vector<std::string> folders;
  for (const char* name : {"TMPDIR", "TEMP", "TMP"}) {
    if (auto folder = get_env_path(name)) folders.push_back(std::move(*folder));
  }
  folders.insert(folders.end(), {"/tmp", "/var/tmp"});
  const auto usable = std::ranges::find_if(folders, is_writable_folder);
  return usable == folders.end() ? "/tmp" : *usable;
}

std::string absolute_folder(const std::string& folder) {
  return std::filesystem::absolute(folder + "/file").lexically_normal().parent_path().string();
}

bool begins_name(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool continues_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// -1: none.
int debugged_rank(const LaunchConfig& config, int world_size) {
  const int rank = config.debug_rank.value.value_or(-1);
  check_rank(rank, world_size, config.debug_rank.origin);
  return rank;
}

// The prefix of a rank's lines on the console; "" for the default.
std::string line_label(const LaunchConfig& config, const wire::Node& node, int local_rank,
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

}  // namespace

std::string log_folder(const LaunchConfig& config) {
  if (!config.as_torchrun) return config.logs.folder.value;
  std::string parent = config.logs.folder.value;
  if (is_temporary_log_folder(config)) {
    parent = temporary_folder() + "/torchelastic_" + random_suffix();
  }
  return parent + "/" + file_name_component(config.job_id.value) + "_" + random_suffix();
}

bool is_temporary_log_folder(const LaunchConfig& config) {
  return config.as_torchrun && !config.logs.folder.given();
}

std::string temporary_parent(const std::string& log_folder) {
  return std::filesystem::path(log_folder).parent_path().string();
}

RankFileLayout::RankFileLayout(const LaunchConfig& config, std::string folder)
    : as_torchrun_(config.as_torchrun),
      split_(config.logs.split),
      folder_(std::move(folder)),
      absolute_folder_(absolute_folder(folder_)),
      shown_(config.logs.shown),
      output_filters_(config.logs.output_filters),
      error_filters_(config.logs.error_filters) {}

RankFiles RankFileLayout::of(int local_rank, int servers, int attempt) const {
  if (!as_torchrun_) {
    const bool server = local_rank < servers;
    const std::string name = (server ? "/serverlog." : "/workerlog.") +
                             std::to_string(server ? local_rank : local_rank - servers);
    const std::string log = folder_ + name;
    return {log, split_ ? log + ".err" : log, absolute_folder_ + name + ".error.json",
            absolute_folder_ + name + ".steps"};
  }
  const std::string name = "/attempt_" + std::to_string(attempt) + "/" + std::to_string(local_rank);
  const std::string own = folder_ + name;
  const int kept = shown_.redirects.of(local_rank) | shown_.tee.of(local_rank);
  return {(kept & wire::RankCommand::STANDARD_OUTPUT) != 0 ? own + "/stdout.log" : "",
          (kept & wire::RankCommand::STANDARD_ERROR) != 0 ? own + "/stderr.log" : "",
          absolute_folder_ + name + "/error.json", absolute_folder_ + name + "/steps"};
}

wire::CopiedLines RankFileLayout::copies(bool errors, int attempt) const {
  const std::string own = as_torchrun_ ? "/attempt_" + std::to_string(attempt) : std::string();
  wire::CopiedLines copies;
  copies.set_path(folder_ + own + (errors ? "/filtered_stderr.log" : "/filtered_stdout.log"));
  const std::vector<std::string>& filters = errors ? error_filters_ : output_filters_;
  copies.mutable_filters()->Add(filters.begin(), filters.end());
  return copies;
}

std::string fill_template(const std::string& text,
                          const std::map<std::string, std::string>& values) {
  std::string filled;
  for (size_t at = 0; at < text.size();) {
    if (text[at] != '$' || at + 1 == text.size()) {
      filled += text[at++];
      continue;
    }
    if (text[at + 1] == '$') {
      filled += '$';
      at += 2;
      continue;
    }
    const bool braced = text[at + 1] == '{';
    const size_t begin = at + (braced ? 2 : 1);
    size_t end = begin;
    if (end < text.size() && begins_name(text[end])) {
      while (end < text.size() && continues_name(text[end])) ++end;
    }
    const bool closed = !braced || (end < text.size() && text[end] == '}');
    const auto found = values.find(text.substr(begin, end - begin));
    if (end == begin || !closed || found == values.end()) {
      filled += text[at++];
      continue;
    }
    filled += found->second;
    at = end + (braced ? 1 : 0);
  }
  return filled;
}

void check_rank(int rank, int world_size, const std::string& origin) {
  if (rank < world_size) return;
  refuse("this job has no rank " + std::to_string(rank), origin,
         "this job has " + counted(world_size, "rank") + ", numbered from 0");
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

RankCommands::RankCommands(const LaunchPlan& plan, const Assignment& assignment, int terminal_width)
    : plan_(plan),
      context_(with_lists(assignment, rank_context(plan))),
      shown_(plan.config().logs.shown),
      files_(plan.config(), plan.log_dir),
      terminal_width_(terminal_width),
      debugged_(debugged_rank(plan.config(), assignment.world_size())) {
  context_.interface = interface_of(resolve(plan.topology.bind_address));
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
      plan_.trains && local_rank == node.servers() && !shown_.chosen && !config.logs.stamp_console;
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
  context.steps_file = files.steps;
  if (!server) rank.set_steps_file(files.steps);
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
  if (config.roles.wanted) rank.set_replacement(config.roles.replacement);
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
  const std::vector<CorePlan> cores = cores_of_ranks(plan.config(), plan.ranks, assignment);
  const RankCommands commands(plan, assignment, terminal_width);
  wire::SpawnRanks spawn;
  *spawn.mutable_settings() = plan.config().guardian;
  for (int local_rank = 0; local_rank < assignment.node().local_world_size(); ++local_rank) {
    *spawn.add_ranks() =
        commands.of(assignment, local_rank, cores[static_cast<size_t>(local_rank)]);
  }
  wire::LogSettings& logs = *spawn.mutable_logs();
  logs = log_settings(plan.config().logs, assignment, spawn);
  for (wire::RankCommand& rank : *spawn.mutable_ranks()) rank.set_shows_apart(logs.errors_apart());
  spawn.set_metrics_path(absolute_folder(plan.log_dir) + kMetricsFile);
  spawn.set_world_size(assignment.world_size());
  const RankFileLayout files(plan.config(), plan.log_dir);
  *logs.mutable_output_copies() = files.copies(false, assignment.world->restarts());
  *logs.mutable_error_copies() = files.copies(true, assignment.world->restarts());
  return spawn;
}

}  // namespace fleet
