#include "launch/planning/cluster_environment.h"

#include "base/env.h"
#include "base/text.h"
#include "launch/planning/addresses.h"
#include "launch/planning/node_list.h"
#include "launch/planning/refuse.h"

namespace fleet {
namespace {

std::optional<long long> number(const ClusterEnvironment& from, const std::string& name) {
  long long value = 0;
  const auto text = from.environment(name);
  if (!text || !parse_int(*text, &value) || value < 0) return std::nullopt;
  return value;
}

void add(ConfigTree* tree, const std::string& key, const std::string& value,
         const std::string& origin) {
  if (!tree->peek(key)) tree->set(key, value, "environment " + origin);
}

// Jobs and steps that share a node need separate ports. Each gets 66 ports between 10000 and 29800
// by its number: endpoints of up to 64 ranks, MASTER_PORT and the rendezvous.
void add_slurm_ports(long long job, long long step, ConfigTree* tree) {
  constexpr long long kBlocks = 300, kPorts = 66;
  const long long first = 10'000 + (job + 37 * step) % kBlocks * kPorts;
  add(tree, "start_port", std::to_string(first), "SLURM_JOB_ID");
  add(tree, "rdzv_port", std::to_string(first + kPorts - 1), "SLURM_JOB_ID");
}

// Slurm nodes share a file system and a command line, so each node needs its own log folder.
void add_logs(long long node_index, ConfigTree* tree) {
  const std::string logs = tree->peek("log_dir").value_or("log");
  tree->set("log_dir", logs + "/node" + std::to_string(node_index), "environment SLURM_NODEID");
}

// With --via=slurm only the first node shows the job.
void hide_other_nodes(long long node_index, ConfigTree* tree) {
  if (node_index == 0) return;
  add(tree, "part", "true", kEnvVia);
  add(tree, "log_level", "WARNING", kEnvVia);
}

void add_slurm(const ClusterEnvironment& from, ConfigTree* tree) {
  // Set only inside a step, not in the script of sbatch.
  const auto list = from.environment("SLURM_STEP_NODELIST");
  const auto nodes = number(from, "SLURM_STEP_NUM_NODES"),
             tasks = number(from, "SLURM_STEP_NUM_TASKS"),
             node_index = number(from, "SLURM_NODEID");
  if (!list || !nodes || !tasks || !node_index) return;
  for (const char* key : {"ips", "master", "nnodes", "host", "rank", "servers", "workers"}) {
    if (tree->peek(key)) return;
  }
  if (*tasks != *nodes) {
    refuse("srun started " + std::to_string(*tasks) + " fleetrun processes on " +
               std::to_string(*nodes) + (*nodes == 1 ? " node" : " nodes"),
           "SLURM_STEP_NUM_TASKS",
           "start one per node with srun --ntasks-per-node=1 fleetrun --nproc_per_node=N ..., or "
           "give --nnodes=1 if each is a separate job");
  }
  if (*nodes == 1) return;
  const auto all = expand_nodes(*list, "environment SLURM_STEP_NODELIST");
  if (static_cast<long long>(all.size()) != *nodes || *node_index >= *nodes) {
    refuse("it lists " + std::to_string(all.size()) + " nodes, but SLURM_STEP_NUM_NODES is " +
               std::to_string(*nodes) + " and SLURM_NODEID " + std::to_string(*node_index),
           "environment SLURM_STEP_NODELIST " + *list, "give --ips yourself");
  }
  add(tree, "ips", list_text(all), "SLURM_STEP_NODELIST");
  add(tree, "host", all[static_cast<size_t>(*node_index)].address, "SLURM_NODEID");
  add_logs(*node_index, tree);
  if (from.environment(kEnvVia) == "slurm") hide_other_nodes(*node_index, tree);
  const auto job = number(from, "SLURM_JOB_ID"), step = number(from, "SLURM_STEP_ID");
  if (!job) return;
  add(tree, "job_id", "slurm-" + std::to_string(*job) + "." + std::to_string(step.value_or(0)),
      "SLURM_JOB_ID");
  add_slurm_ports(*job, step.value_or(0), tree);
}

// For pod 3, "train-3.train.default.svc.cluster.local": the same name with index 0. "" if the pod
// has no such name.
std::string first_pod(const ClusterEnvironment& from, const std::string& index) {
  const std::string pod = from.host_name(), name = from.canonical_name(), ending = "-" + index;
  if (!pod.ends_with(ending) || !name.starts_with(pod + ".")) return {};
  return pod.substr(0, pod.size() - index.size()) + "0" + name.substr(pod.size());
}

void add_kubernetes(const ClusterEnvironment& from, ConfigTree* tree) {
  const auto index = from.environment("JOB_COMPLETION_INDEX");
  if (!index || !from.environment("KUBERNETES_SERVICE_HOST") || tree->peek("ips")) return;
  // Without --nnodes each pod is a separate job, as in a parameter sweep.
  long long nodes = 0;
  const std::string count = tree->peek("nnodes").value_or("1");  // perhaps a range
  if (!parse_int(std::string_view(count).substr(count.find(':') + 1), &nodes) || nodes < 2) return;
  add(tree, "rank", *index, "JOB_COMPLETION_INDEX");
  if (tree->peek("master")) return;
  const std::string master = first_pod(from, *index);
  if (master.empty()) {
    refuse("the pods of this job have no DNS names: this pod is '" + from.host_name() + "'",
           "environment JOB_COMPLETION_INDEX",
           "give the pod template a `subdomain` with a headless service (see "
           "config/kubernetes), or give --master");
  }
  add(tree, "master", master, "JOB_COMPLETION_INDEX");
}

// Slurm numbers its own steps from here on: a batch script, salloc's own shell.
constexpr long long kFirstOwnStep = 0xfffffff0;

}  // namespace

ClusterEnvironment real_cluster_environment() {
  return {get_env, fleet::host_name, fleet::canonical_name};
}

void add_cluster_settings(const ClusterEnvironment& cluster, ConfigTree* tree) {
  add_slurm(cluster, tree);
  add_kubernetes(cluster, tree);
}

bool has_slurm_allocation(const EnvironmentLookup& environment) {
  return environment("SLURM_JOB_ID") && environment("SLURM_JOB_NODELIST");
}

bool in_slurm_step(const EnvironmentLookup& environment) {
  long long step = 0;
  const auto text = environment("SLURM_STEP_ID");
  return text && parse_int(*text, &step) && step < kFirstOwnStep;
}

bool in_slurm_allocation(const EnvironmentLookup& environment) {
  return has_slurm_allocation(environment) && !in_slurm_step(environment);
}

}  // namespace fleet
