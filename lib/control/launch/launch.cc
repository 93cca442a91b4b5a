#include "launch/launch.h"

#include <cstdlib>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "launch/planning/arguments.h"
#include "launch/planning/launch_plan.h"
#include "launch/planning/options.h"
#include "launch/planning/refuse.h"
#include "launch/starting/start_job.h"
#include "launch/tools/doctor/preflight.h"
#include "launch/tools/dry_run/dry_run.h"
#include "rendezvous/types.h"

namespace fleet {
namespace {

int run(LaunchRequest request) {
  set_up_logging(request.config.logs.own_level(), "fleetrun");
  for (const std::string& line : request.warnings) spdlog::warn("{}", line);
  LaunchPlan plan = make_launch_plan(std::move(request));
  if (plan.request.dry_run.wanted) {
    print_dry_run(plan);
    return 0;
  }
  warn_of_settings();
  if (!plan.config().preflight) return start_job(&plan, {});
  const NodeFacts facts = gather_facts(plan);
  return start_job(
      &plan, [&](const Assignment& assignment) { return preflight(plan, facts, assignment); });
}

// Ranks inherit this process's environment.
void export_variables(const std::vector<std::string>& exported) {
  for (const std::string& variable : exported) {
    const size_t equals = variable.find('=');
    if (equals == std::string::npos || equals == 0) continue;
    ::setenv(variable.substr(0, equals).c_str(), variable.substr(equals + 1).c_str(), 1);
  }
}

std::string help_on(const std::string& topic, const LaunchExtras& extras) {
  const bool all = topic.empty() || topic == "all";
  const std::string help = extras.command_help ? extras.command_help(all ? "" : topic) : "";
  if (all) return launch_help(!topic.empty()) + help;
  if (!help.empty()) return help;
  refuse("no help on '" + topic + "'", "--help",
         "see fleetrun --help for the commands and fleetrun --help all for every option");
}

const Via* chosen_via(const LaunchRequest& request, const std::vector<Via>& vias) {
  const std::string& name = request.config.via.name;
  if (name.empty()) return nullptr;
  std::vector<std::string> names;
  for (const Via& via : vias) {
    if (via.name == name) return &via;
    names.push_back(via.name);
  }
  refuse("unknown launch method '" + name + "'", "--via",
         names.empty() ? "run the same line on every node" : "use one of " + join(names, ", "));
}

}  // namespace

int launch(const std::vector<std::string>& arguments, const LaunchExtras& extras) {
  LaunchRequest request = parse_arguments(arguments);
  if (print_if_requested(
          request, [&] { return help_on(request.help_on, extras); }, extras.completion,
          extras.build_info)) {
    return 0;
  }
  const Via* via = chosen_via(request, extras.vias);
  check_options(request, ArgumentsFor::kStart);
  if (!via) export_variables(request.config.exported);
  if (!request.ignored.empty() || !request.notes.empty()) {
    set_up_logging(request.config.logs.level, "fleetrun");
  }
  if (!request.ignored.empty()) spdlog::info("options without effect: {}", request.ignored);
  for (const std::string& note : request.notes) spdlog::info("{}", note);
  try {
    if (!via) return run(std::move(request));
    if (!request.dry_run.wanted) return via->start(request);
    print_via_plan(via->plan(request), request.dry_run);
    return 0;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kTimeout) throw;
    spdlog::error("{}", error.what());
    return kExitRendezvous;
  }
}

}  // namespace fleet
