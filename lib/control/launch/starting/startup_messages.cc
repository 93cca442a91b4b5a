#include "launch/starting/startup_messages.h"

#include <unistd.h>

#include <algorithm>
#include <map>

#include "base/clock.h"
#include "base/counted.h"
#include "base/env.h"
#include "base/log.h"
#include "base/number_text.h"
#include "base/standard_error.h"
#include "base/terminal_text.h"
#include "base/terminal_width.h"
#include "base/text.h"
#include "launch/planning/devices.h"
#include "launch/planning/environment.h"
#include "launch/planning/options.h"
#include "launch/planning/rank_commands.h"
#include "launch/planning/secret_names.h"
#include "observe/progress.h"

namespace fleet {
namespace {

constexpr size_t kKeyWidth = 40, kValueWidth = 45, kSpacing = 2;

std::string python_list(const std::vector<std::string>& items) {
  std::vector<std::string> quoted;
  for (const std::string& item : items) {
    std::string text;
    for (const char c : item)
      text += c == '\'' || c == '\\' ? std::string("\\") + c : std::string(1, c);
    quoted.push_back("'" + text + "'");
  }
  return "[" + join(quoted, ", ") + "]";
}

std::string python_value(const Settings& settings, const ConfigKey& key, const Option& option) {
  if (!settings.given(key.path) && option.optional) return key.path == "ips" ? "127.0.0.1" : "None";
  switch (key.type) {
    case ConfigType::kBool:
      return settings.boolean(key.path) ? "True" : "False";
    case ConfigType::kInteger:
      return std::to_string(settings.integer(key.path));
    case ConfigType::kTexts:
      return join(
          key.path == "export" ? masked(settings.texts("export")) : settings.texts(key.path), ",");
    case ConfigType::kText:
      return settings.text(key.path).empty() ? "None" : settings.text(key.path);
    default: {
      char text[32];
      std::snprintf(text, sizeof text, "%g", settings.number(key.path));
      return text;
    }
  }
}

struct Layout {
  std::string indent;
  size_t key_width, value_width;
  size_t inner() const { return key_width + kSpacing + value_width; }
  size_t columns() const { return indent.size() + inner() + 2; }
};

std::string row(const std::string& key, const std::string& value, const Layout& layout) {
  std::string shown = value;
  if (shown.size() >= layout.value_width) {
    shown = "... " + shown.substr(shown.size() - (layout.value_width - 4));
  }
  const size_t pad = layout.value_width - shown.size();
  return layout.indent + "|" + std::string(layout.key_width - key.size(), ' ') + key +
         std::string(kSpacing, ' ') + std::string(pad / 2, ' ') + shown +
         std::string(pad - pad / 2, ' ') + "|\n";
}

// Leave the last column free, because some terminals wrap after it.
Layout narrow_layout(size_t key_width, int columns) {
  constexpr size_t kMinValueWidth = 12, kUsual = 80;
  const size_t width = (columns > 0 ? static_cast<size_t>(columns) : kUsual) - 1;
  const size_t used = key_width + kSpacing + 2;
  return {"", key_width, width > used + kMinValueWidth ? width - used : kMinValueWidth};
}

// "Local start 2 processes. First process ..." and the table of its environment: one for the
// servers of this node and one for its trainers.
std::vector<std::string> tables_of(const LaunchPlan& plan, const Assignment& assignment,
                                   TableStyle style) {
  const wire::Node& node = assignment.node();
  const bool roles = assignment.world->servers() > 0;
  const RankContext context = with_lists(assignment, rank_context(plan));
  std::vector<std::string> tables;
  const auto add = [&](const std::string& role, int count, int first) {
    if (count == 0) return;
    std::string& text =
        tables.emplace_back("Local " + role + "start " + std::to_string(count) + " processes.");
    if (style == TableStyle::kNone) return;
    const Variables variables =
        table_environment(assignment, first, context, plan.config().dialects_given);
    text += " First process distributed environment info (Only For Debug): \n" +
            environment_table(variables, style, terminal_width(STDERR_FILENO)) + "\n";
  };
  add("server ", node.servers(), 0);
  add(roles ? "worker " : "", trainers(node), node.servers());
  return tables;
}

// "ranks 2 to 3 of 4"
std::string ranks_of(const Assignment& assignment) {
  const int first = assignment.node().first_rank(), count = trainers(assignment.node());
  const std::string of = " of " + std::to_string(assignment.world_size());
  if (count == 1) return "rank " + std::to_string(first) + of;
  return "ranks " + std::to_string(first) + " to " + std::to_string(first + count - 1) + of;
}

void print_line(const LaunchPlan& plan, const Assignment& assignment) {
  spdlog::info("starting {0}; logs: {1}; environment: {1}/{2}, or here with --table=auto",
               world_text(*assignment.world), plan.log_dir, kEnvironmentLog);
}

void print_log_hint(const LaunchPlan& plan, const Assignment& assignment) {
  const std::string& log_dir = plan.log_dir;
  if (assignment.world->servers() > 0) {
    return spdlog::info("servers write their logs to {0}/serverlog.*, workers to {0}/workerlog.*",
                        log_dir);
  }
  spdlog::info(
      "details about PADDLE_TRAINER_ENDPOINTS can be found in {0}/endpoints.log, and detail "
      "running logs maybe found in {0}/workerlog.0",
      log_dir);
}

void print_warnings(const LaunchPlan& plan, const Assignment& assignment) {
  for (const std::string& line : proxy_warnings(plan.config().dialects, assignment, get_env)) {
    spdlog::warn("{}", line);
  }
  if (plan.trains) return;  // fleet-worker uses the chosen GPUs
  const std::string line = local_rank_warning(plan.config(), plan.ranks, find_gpus());
  if (!line.empty()) spdlog::warn("{}", line);
}

void print_restart(const LaunchPlan& plan, const Assignment& assignment) {
  spdlog::info(
      "generation {}: restarting {} processes on this node ({}); details are in {}/endpoints.log",
      assignment.generation(), assignment.node().local_world_size(), ranks_of(assignment),
      plan.log_dir);
}

}  // namespace

std::string configuration_block(const Settings& settings, const std::vector<std::string>& program,
                                bool all) {
  static const Settings defaults = ConfigTree().validate(launch_schema());
  std::map<std::string, std::string> lines;
  const std::vector<ConfigKey>& keys = launch_schema().keys();
  for (size_t i = 0; i < keys.size(); ++i) {
    const Option& option = launch_options()[i];
    const bool given = settings.given(option.key);
    // Paddle prints all of its options. Show rarely used options only if given.
    const bool rare = !option.common && (option.optional || option.is_flag());
    const std::string value = python_value(settings, keys[i], option);
    const bool differs = given && value != python_value(defaults, keys[i], option);
    if (option.internal || !(all ? given || !rare : differs)) continue;
    lines[keys[i].path] = value;
  }
  lines["training_script"] = program.front();
  lines["training_script_args"] = python_list({program.begin() + 1, program.end()});
  std::string text = "-----------  Configuration Arguments -----------\n";
  for (const auto& [key, value] : lines) text += key + ": " + value + "\n";
  return escape_controls(text + std::string(48, '-') + "\n");
}

std::string environment_table(const Variables& variables, TableStyle style, int columns) {
  const std::string title = "Distributed Envs";
  size_t longest = title.size();
  for (const auto& [key, value] : variables) longest = std::max(longest, key.size());
  Layout shown{"    ", std::max(longest, kKeyWidth), kValueWidth};
  const bool fits = columns == 0 || static_cast<size_t>(columns) >= shown.columns();
  if (style == TableStyle::kNarrow || (style == TableStyle::kAuto && !fits))
    shown = narrow_layout(longest, columns);
  const std::string border = shown.indent + "+" + std::string(shown.inner(), '=') + "+";
  std::string text = border + "\n" + row(title, "Value", shown);
  text += shown.indent + "+" + std::string(shown.inner(), '-') + "+\n";
  for (const auto& [key, value] : variables) text += row(key, value, shown);
  return text + border;
}

std::string shared_logs_warning(const std::string& log_dir, const std::string& holder,
                                int node_rank, const std::string& job,
                                const EnvironmentLookup& environment) {
  // Two jobs may have the same name, but not a node twice.
  const bool other_node = holder.find(" of job '" + job + "'") != std::string::npos &&
                          !holder.starts_with("node " + std::to_string(node_rank) + " of");
  const std::string name = other_node                    ? "$(hostname)"
                           : environment("SLURM_JOB_ID") ? "$SLURM_JOB_ID"
                                                         : "NAME";
  return log_dir + ": " + shown_name(holder, 200) + " also writes its logs there; give each " +
         (other_node ? "node" : "job") + " its own folder, for example --log_dir=log/" + name;
}

std::string endpoints_log(const World& world) {
  std::string text;
  if (world.servers() > 0) {
    text = "PADDLE_PSERVERS_IP_PORT_LIST: \n" + join(endpoints_of(world, true), "\n") + "\n";
  }
  return text + "PADDLE_TRAINER_ENDPOINTS: \n" + join(endpoints_of(world, false), "\n") + "\n";
}

std::string environment_log(const LaunchPlan& plan, const Assignment& assignment) {
  const LaunchRequest& request = plan.request;
  const bool all = plan.config().logs.level == "DEBUG";
  std::string text =
      configuration_block(request.settings, request.program, all) + mode_line(plan) + "\n";
  for (const std::string& table : tables_of(plan, assignment, TableStyle::kPaddle)) text += table;
  return text;
}

std::string mode_line(const LaunchPlan& plan) {
  return plan.on_gpus() ? "launch train in GPU mode" : "launch train in CPU mode";
}

std::string world_text(const World& world) {
  const std::string servers =
      world.servers() > 0 ? counted(world.servers(), "server") + " and " : std::string();
  return servers + counted(world.world_size(), "rank") + " on " +
         counted(world.nodes_size(), "node");
}

std::string elapsed_text(std::chrono::steady_clock::duration time) {
  const double seconds = std::chrono::duration<double>(time).count();
  return seconds < 60 ? format_printf("%.1f s", seconds) : format_duration(seconds);
}

void print_configuration(const LaunchRequest& request, const std::string& mode) {
  const LogConfig& logs = request.config.logs;
  if (logs.quiet || logs.start != StartStyle::kTable) return;
  std::string text = configuration_block(request.settings, request.program, logs.level == "DEBUG");
  if (!mode.empty()) text += mode + "\n";
  write_standard_error(text);
}

void print_start(const LaunchPlan& plan, const Assignment& assignment, bool again, bool speaks) {
  const LogConfig& logs = plan.config().logs;
  if (logs.start == StartStyle::kSilent) return;
  if (again) return speaks ? print_restart(plan, assignment) : void();
  const bool table = speaks && logs.start == StartStyle::kTable;
  if (table && spdlog::should_log(spdlog::level::info)) {
    for (const std::string& text : tables_of(plan, assignment, logs.table)) {
      spdlog::info("{}", text);
    }
  } else if (speaks && !table) {
    print_line(plan, assignment);
  }
  print_warnings(plan, assignment);
  if (table) print_log_hint(plan, assignment);
}

void print_success(const LaunchPlan& plan, std::chrono::steady_clock::time_point began,
                   std::chrono::steady_clock::time_point now) {
  if (plan.config().logs.start != StartStyle::kLine) return;
  spdlog::info("the job succeeded after {}", elapsed_text(now - began));
}

}  // namespace fleet
