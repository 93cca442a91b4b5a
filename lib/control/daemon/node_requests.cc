#include "daemon/node_requests.h"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/env.h"
#include "base/text.h"
#include "launch/planning/addresses.h"
#include "launch/planning/arguments.h"
#include "launch/planning/options.h"
#include "launch/planning/refuse.h"
#include "launch/planning/secret_names.h"
#include "launch/planning/start_style.h"
#include "launch/planning/topology.h"
#include "transport/security.h"

namespace fleet {
namespace {

// Prefixes of variables that tune the libraries of training programs.
constexpr const char* kForwardedPrefixes[] = {
    "NCCL_",     "UCX_",  "FI_",      "GLOO_", "PADDLE_", "FLAGS_",  "GLOG_",
    "TORCH_",    "JAX_",  "PYTORCH_", "XLA_",  "OMP_",    "KMP_",    "MKL_",
    "OPENBLAS_", "DNNL_", "ONEDNN_",  "CUDA_", "CUDNN_",  "CUBLAS_", "TF_"};

// Options that differ by node, or concern only the client.
const std::set<std::string>& own_options() {
  static const std::set<std::string> all = {"via",          "via_options", "remote_fleetrun",
                                            "control_pipe", "fleetd_port", "fleetd_secret_file",
                                            "detach",       "share_gpus",  "chdir",
                                            "export",       "user",        "ips",
                                            "nnodes",       "host",        "master",
                                            "rank",         "start_port",  "job_id",
                                            "log_dir",      "rdzv_port",   "part",
                                            "log_level",    "secret_file"};
  return all;
}

bool is_variable_of_option(const std::string& name) {
  for (const Option& option : launch_options()) {
    const auto& variables = option.environment;
    if (std::find(variables.begin(), variables.end(), name) != variables.end()) return true;
  }
  return false;
}

bool is_forwarded(const std::string& name) {
  if (is_secret(name) || is_variable_of_option(name) || name == "CUDA_VISIBLE_DEVICES")
    return false;
  return std::any_of(std::begin(kForwardedPrefixes), std::end(kForwardedPrefixes),
                     [&](const char* prefix) { return name.starts_with(prefix); });
}

std::string job_name(const LaunchRequest& request, const ClientContext& client) {
  if (request.config.job_id.given()) return request.config.job_id.value;
  const std::string stem = std::filesystem::path(request.program.front()).stem().string();
  return (stem.empty() ? "job" : stem) + "-" + client.nonce;
}

// The listed nodes; this host is not one of them.
const std::vector<ListedNode>& nodes_of(const LaunchRequest& request) {
  const NodesConfig& config = request.config.nodes;
  for (const std::string& origin : {config.host.origin, config.master.origin, config.rank.origin}) {
    if (!origin.starts_with("-")) continue;  // the environment applies to the client
    refuse("--via needs a list of the nodes", origin, "list them with --ips");
  }
  const std::vector<ListedNode>& nodes = config.listed.value;
  if (nodes.empty()) {
    refuse("no nodes are given", "--via", "list them with --ips");
  }
  // Rejects a node count that contradicts the list.
  if (config.count.by_flag()) count_of_listed(request.config);
  return nodes;
}

// --export=CUDA_VISIBLE_DEVICES= requests no GPUs. Otherwise fleetd chooses the GPUs.
bool has_no_gpus(const Variables& environment) {
  for (const auto& [name, value] : environment) {
    if (name != "CUDA_VISIBLE_DEVICES") continue;
    if (value.empty()) return true;
    refuse("it may select GPUs that other jobs occupy", "--export " + name + "=" + value,
           "select them with --gpus");
  }
  return false;
}

}  // namespace

ClientContext client_context(const SecurityConfig& security) {
  ClientContext context;
  const passwd* entry = ::getpwuid(::geteuid());
  context.user = entry ? entry->pw_name : std::to_string(::geteuid());
  std::error_code none;
  context.folder = std::filesystem::current_path(none).string();
  for (const std::string& text : whole_environment()) {
    const size_t equals = text.find('=');
    if (equals != std::string::npos) {
      context.environment.emplace_back(text.substr(0, equals), text.substr(equals + 1));
    }
  }
  const Sourced<std::string>& file = security.secret_file;
  context.secret = file.given() ? read_secret(file.value) : new_secret();
  context.nonce = new_secret().substr(0, 6);
  return context;
}

Variables forwarded_environment(const Variables& environment,
                                const std::vector<std::string>& exported) {
  std::map<std::string, std::string> all;
  for (const auto& [name, value] : environment) {
    if (is_forwarded(name)) all[name] = value;
  }
  for (const std::string& entry : exported) {
    const size_t equals = entry.find('=');
    if (equals != std::string::npos) {
      all[entry.substr(0, equals)] = entry.substr(equals + 1);
      continue;
    }
    bool found = entry.ends_with('*');
    for (const auto& [name, value] : environment) {
      const bool matches =
          entry.ends_with('*')
              ? name.starts_with(std::string_view(entry).substr(0, entry.size() - 1))
              : name == entry;
      if (matches) all[name] = value, found = true;
    }
    if (!found) {
      refuse(entry + " is not set here", "--export", "set it, or write " + entry + "=VALUE");
    }
  }
  return {all.begin(), all.end()};
}

namespace {

// The arguments common to every node's fleetrun.
std::vector<std::string> common_arguments(const LaunchRequest& request,
                                          const std::vector<ListedNode>& nodes,
                                          const std::string& job_id) {
  const NodesConfig& config = request.config.nodes;
  std::vector<std::string> all = given_flags(request, own_options());
  all.push_back("--part");
  all.push_back("--job_id=" + job_id);
  // Any free ports by default. The other nodes learn the rendezvous port from node 0.
  all.push_back("--start_port=" + std::to_string(config.start_port.value.value_or(0)));
  all.push_back("--rdzv_port=" + std::to_string(config.rendezvous_port.value.value_or(0)));
  if (config.count.by_flag()) all.push_back("--nnodes=" + config.count.value->text());
  // --servers and --workers list the nodes themselves.
  if (!request.config.roles.listed()) all.push_back("--ips=" + list_text(nodes));
  // Lines of several nodes need their rank as prefix; those of a single node do not.
  if (nodes.size() > 1 && !request.config.logs.shown.chosen)
    all.push_back("--local_ranks_filter=0");
  keep_start_style(request, &all);
  return all;
}

// The parts of the request common to all nodes.
JobRequest common_request(const LaunchRequest& request, const ClientContext& client,
                          const std::vector<ListedNode>& nodes) {
  const LaunchConfig& config = request.config;
  JobRequest job;
  job.set_job_id(job_name(request, client));
  job.set_nnodes(static_cast<int>(nodes.size()));
  job.set_user(config.via.user.value_or(client.user));
  job.set_folder(config.via.folder.value_or(client.folder));
  for (const std::string& word : common_arguments(request, nodes, job.job_id())) {
    job.add_arguments(word);
  }
  for (const std::string& word : request.program) job.add_program(word);
  Variables environment = forwarded_environment(client.environment, config.exported);
  job.mutable_gpus()->set_none(has_no_gpus(environment));
  if (!client.secret.empty()) environment.emplace_back("FLEET_JOB_SECRET", client.secret);
  for (const auto& [name, value] : environment) add_value(name, value, job.mutable_environment());
  job.mutable_gpus()->set_names(join(config.gpus.value, ","));
  job.mutable_gpus()->set_share(config.via.share_gpus);
  job.set_restarts(config.restarts.max_restarts > 0);
  for (const ListedNode& node : nodes) {
    job.add_nodes(endpoint(node.address, config.via.fleetd_port));
  }
  return job;
}

}  // namespace

std::vector<NodeRequest> node_requests(const LaunchRequest& request, const ClientContext& client) {
  const LogConfig& log_config = request.config.logs;
  const std::vector<ListedNode>& nodes = nodes_of(request);
  const JobRequest common = common_request(request, client, nodes);
  const std::string logs =
      log_config.folder.given() ? log_config.folder.value : "log/" + common.job_id();
  std::vector<NodeRequest> all;
  for (size_t k = 0; k < nodes.size(); ++k) {
    JobRequest job = common;
    job.set_node_rank(static_cast<int>(k));
    job.add_arguments("--host=" + nodes[k].address);
    // Nodes may share a file system.
    job.set_log_dir(logs + (nodes.size() > 1 ? "/node" + std::to_string(k) : ""));
    job.add_arguments("--log_dir=" + job.log_dir());
    // Let only one node log messages that are equal on all nodes.
    const std::string& level = log_config.level;
    job.add_arguments("--log_level=" + (k > 0 && level == "INFO" ? "WARNING" : level));
    job.mutable_gpus()->set_count(nodes[k].devices);
    all.push_back({nodes[k].address, common.nodes(static_cast<int>(k)), std::move(job)});
  }
  return all;
}

namespace {

std::string gpus_of(const GpuRequest& gpus) {
  const std::string which = gpus.none()             ? "none"
                            : !gpus.names().empty() ? gpus.names()
                            : gpus.count() > 0      ? std::to_string(gpus.count()) + " of them"
                                                    : "all";
  return gpus.share() ? which + ", shared" : which;
}

// The processes of each node; nodes beyond the count wait as spares.
std::vector<NodeProcesses> processes_of(const LaunchRequest& request) {
  const LaunchConfig& config = request.config;
  std::vector<ListedNode> nodes = nodes_of(request);
  const size_t listed = nodes.size();
  if (config.nodes.count.by_flag()) {
    nodes.resize(static_cast<size_t>(count_of_listed(config).max));
  }
  std::vector<NodeProcesses> processes = expected_processes(config, nodes);
  processes.resize(listed, {.known = true});
  return processes;
}

}  // namespace

ViaPlan plan_of_requests(const LaunchRequest& request, const std::vector<NodeRequest>& requests,
                         const std::function<std::string(const NodeRequest&)>& through) {
  ViaPlan plan;
  plan.job_id = requests[0].job.job_id();
  plan.via = request.config.via.name;
  plan.program = request.program;
  for (const wire::NamedValue& variable : requests[0].job.environment()) {
    plan.environment.emplace_back(variable.name(), variable.value());
  }
  const std::vector<NodeProcesses> processes = processes_of(request);
  for (size_t k = 0; k < requests.size(); ++k) {
    const JobRequest& job = requests[k].job;
    NodeStart& node = plan.nodes.emplace_back();
    node.name = requests[k].name;
    node.through = through(requests[k]);
    node.folder = job.folder();
    node.logs = job.log_dir();
    node.gpus = gpus_of(job.gpus());
    node.processes = processes[k];
    node.command = {"fleetrun"};
    node.command.insert(node.command.end(), job.arguments().begin(), job.arguments().end());
    node.command.emplace_back("--");
    node.command.insert(node.command.end(), job.program().begin(), job.program().end());
  }
  plan.notes = {"programs, files, folders and GPUs are checked on the nodes at the start"};
  if (requests.size() > 1) {
    plan.notes.emplace_back("the other nodes learn the rendezvous port from node 0");
  }
  if (request.config.via.detach) plan.notes.emplace_back("fleetrun exits once all ranks run");
  return plan;
}

}  // namespace fleet
