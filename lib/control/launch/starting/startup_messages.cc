#include "launch/starting/startup_messages.h"

#include <unistd.h>

#include <algorithm>

#include "base/env.h"
#include "base/log.h"
#include "base/standard_error.h"
#include "launch/planning/environment.h"
#include "launch/starting/proxies.h"
#include "launch/starting/tables.h"
#include "observe/progress.h"

namespace fleet {
namespace {

std::string table_of(const LaunchPlan& plan, const Assignment& assignment, int local_rank) {
  const LaunchConfig& config = plan.config();
  const Variables variables =
      table_environment(assignment, local_rank, rank_context(plan), config.dialects_given);
  return environment_table(variables, config.logs.table, terminal_width(STDERR_FILENO));
}

void print_table(const LaunchPlan& plan, const Assignment& assignment, const char* role, int count,
                 int first) {
  if (count == 0) return;
  if (plan.config().logs.table == TableStyle::kNone) {
    return spdlog::info("Local {}start {} processes.", role, count);
  }
  spdlog::info(
      "Local {}start {} processes. First process distributed environment info (Only For Debug): "
      "\n{}\n",
      role, count, table_of(plan, assignment, first));
}

// "ranks 2 to 3 of 4"
std::string ranks_of(const Assignment& assignment) {
  const int first = assignment.first_rank(), count = assignment.node().trainers();
  const std::string of = " of " + std::to_string(assignment.world_size());
  if (count == 1) return "rank " + std::to_string(first) + of;
  return "ranks " + std::to_string(first) + " to " + std::to_string(first + count - 1) + of;
}

void print_restart(const LaunchPlan& plan, const Assignment& assignment) {
  spdlog::info(
      "generation {}: restarting {} processes on this node ({}); details are in {}/endpoints.log",
      assignment.generation(), assignment.node().nproc(), ranks_of(assignment), plan.log_dir);
}

}  // namespace

void print_configuration(const LaunchRequest& request, const std::string& mode) {
  const LogConfig& logs = request.config.logs;
  if (logs.quiet) return;
  std::string text = configuration_block(request.settings, request.program, logs.level == "DEBUG");
  if (!mode.empty()) text += mode + "\n";
  write_standard_error(text);
}

void print_start(const LaunchPlan& plan, const Assignment& assignment, bool again) {
  if (again) return print_restart(plan, assignment);
  const NodePlacement& node = assignment.node();
  const std::string& log_dir = plan.log_dir;
  const bool roles = assignment.world->servers > 0;
  print_table(plan, assignment, "server ", node.servers, 0);
  print_table(plan, assignment, roles ? "worker " : "", node.trainers(), node.servers);
  for (const std::string& line : proxy_warnings(plan.config().dialects, assignment, get_env)) {
    spdlog::warn("{}", line);
  }
  if (roles) {
    spdlog::info("servers write their logs to {0}/serverlog.*, workers to {0}/workerlog.*",
                 log_dir);
    return;
  }
  spdlog::info(
      "details about PADDLE_TRAINER_ENDPOINTS can be found in {0}/endpoints.log, and detail "
      "running logs maybe found in {0}/workerlog.0",
      log_dir);
}

}  // namespace fleet
