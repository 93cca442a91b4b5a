#include <algorithm>

#include "base/text.h"
#include "launch/planning/arguments.h"
#include "launch/planning/dialects/dialect.h"
#include "launch/planning/launch_config.h"
#include "launch/planning/options.h"
#include "launch/planning/program.h"
#include "launch/planning/refuse.h"

namespace fleet {
namespace {

// Options that apply only to some launch methods of --via.
struct ViaOption {
  const char* key;
  std::vector<std::string> vias;
};
const std::vector<ViaOption>& via_options_table() {
  static const std::vector<ViaOption> all = {{"fleetd_port", {"fleetd"}},
                                             {"fleetd_secret_file", {"fleetd"}},
                                             {"detach", {"fleetd"}},
                                             {"share_gpus", {"fleetd"}},
                                             {"user", {"fleetd"}},
                                             {"chdir", {"fleetd", "ssh"}},
                                             {"via_options", {"ssh", "slurm"}},
                                             {"remote_fleetrun", {"ssh", "slurm"}}};
  return all;
}

void add_inapplicable_via_options(const std::string& via,
                                  std::vector<InapplicableOption>* inapplicable) {
  for (const ViaOption& of : via_options_table()) {
    if (std::find(of.vias.begin(), of.vias.end(), via) != of.vias.end()) continue;
    inapplicable->push_back({of.key,
                             "it has no effect without --via=" + join(of.vias, " or --via="),
                             of.vias.size() > 1 ? "add one of them, or leave it out"
                                                : "add it, or leave the option out"});
  }
  if (via.empty()) return;
  for (const char* key : {"control_pipe", "part"}) {
    inapplicable->push_back(
        {key, "--via passes it to the fleetruns of the nodes itself", "leave it out"});
  }
}

// A rank's environment is created on its node.
void check_via_dry_run(const DryRun& options) {
  const char* what = options.format == "shell" ? "--format shell"
                     : options.rank >= 0       ? "--rank_env"
                                               : "";
  if (*what == 0) return;
  refuse("each node creates the environment of its ranks", what,
         "use it on the node without --via, or use --format table or json for the whole job");
}

// Options that apply only to restarts.
void add_inapplicable_restart_options(const LaunchRequest& request,
                                      std::vector<InapplicableOption>* inapplicable) {
  const bool restarts = request.config.restarts.max_restarts > 0;
  const std::optional<NodeCount>& count = request.config.nodes.count.value;
  const bool range = count && count->is_range();
  const std::string next = "give --max_restart=N too, or leave it out";
  if (!restarts) inapplicable->push_back({"no_progress_restarts", "this job never restarts", next});
  if (!restarts && !range) {
    inapplicable->push_back(
        {"elastic_timeout", "this job never restarts, so it does not wait for nodes", next});
  }
  const std::string overruled = overruled_by_elasticity(request.settings);
  if (!overruled.empty()) inapplicable->push_back({overruled, {}, {}});
}

void check_doctor(const Settings& settings) {
  std::vector<std::string> of_starts = {"via",  "preflight", "debug_rank", "control_pipe",
                                        "part", "export",    "on_end"};
  for (const ViaOption& of : via_options_table()) of_starts.emplace_back(of.key);
  for (const std::string& key : of_starts) {
    if (!given_by_flag(settings, key)) continue;
    refuse("it applies only to a start", settings.origin(key),
           "leave it out: fleetrun doctor runs on this node and does not start a job");
  }
}

// A job file says itself whether its trainers can be replaced.
void check_replacement(const LaunchRequest& request) {
  const bool trains = !request.program.empty() && is_job_file(request.program.front());
  if (!trains || request.config.roles.replacement != wire::RankCommand::ALWAYS) return;
  refuse("the mode of a job file decides whether a trainer can be replaced",
         request.settings.origin("replace_trainers") + " always",
         "leave it out: trainers are replaced in the modes async and geo");
}

void check_dialects(const LaunchRequest& request) {
  const LaunchConfig& config = request.config;
  const bool trains = !request.program.empty() && is_job_file(request.program.front());
  if (trains) check_dialects_of_worker(config.dialects);
  if (config.debug_rank.value && any_dialect(config.dialects, &Dialect::needs_socket)) {
    refuse("a rank of --dialect=mpich inherits a socket, which fleetrun debug cannot give it",
           config.debug_rank.origin, "start the job without it, and use fleetrun debug --attach");
  }
}

// The job id is shown on terminals and is part of file and folder names.
void check_job_id(const Sourced<std::string>& job_id) {
  const std::string& id = job_id.value;
  const bool control =
      std::any_of(id.begin(), id.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
  const std::vector<std::string> parts = split(id, '/');
  const bool leads_out = std::find(parts.begin(), parts.end(), "..") != parts.end();
  if (!control && !leads_out) return;
  refuse(control ? "it contains control characters" : "'..' leads out of the log folder",
         job_id.origin, "use letters, digits, and -_.");
}

}  // namespace

std::vector<InapplicableOption> inapplicable_options(const LaunchRequest& request) {
  std::vector<InapplicableOption> inapplicable;
  add_inapplicable_via_options(request.config.via.name, &inapplicable);
  add_inapplicable_restart_options(request, &inapplicable);
  if (!request.config.metrics.wanted()) {
    inapplicable.push_back(
        {"metrics_token_file", "it has no effect without --metrics", "add --metrics"});
  }
  if (!request.config.roles.wanted) {  // read_roles() rejects the other flags
    for (const char* key : {"with_gloo", "gloo_port", "replace_trainers"})
      inapplicable.push_back({key, {}, {}});
  }
  return inapplicable;
}

void check_options(const LaunchRequest& request, ArgumentsFor what) {
  const Settings& settings = request.settings;
  if (what == ArgumentsFor::kDoctor) check_doctor(settings);
  for (const InapplicableOption& inapplicable : inapplicable_options(request)) {
    if (given_by_flag(settings, inapplicable.key)) {
      refuse(inapplicable.what, settings.origin(inapplicable.key), inapplicable.next);
    }
  }
  const LaunchConfig& config = request.config;
  const Sourced<std::string>& secret_file = config.security.secret_file;
  if (!config.via.name.empty() && request.dry_run.wanted) check_via_dry_run(request.dry_run);
  if (config.via.name == "slurm" && secret_file.value == "-") {
    refuse("the nodes cannot read your standard input", secret_file.with("-"),
           "give a file, or FLEET_JOB_SECRET");
  }
  if (config.security.insecure && secret_file.given()) {
    refuse("it contradicts --insecure", secret_file.origin, "give only one of them");
  }
  check_job_id(config.job_id);
  check_dialects(request);
  check_replacement(request);
  check_log_settings(config.logs, 1);
  if (config.logs.label && config.logs.collapse == Switch::kOn) {
    refuse("identical lines of several ranks cannot be merged under the prefix of one rank",
           settings.origin("collapse"), "leave it out, or --log_line_prefix_template");
  }
}

}  // namespace fleet
