#include "launch/planning/slurm.h"

#include <algorithm>
#include <optional>

#include "base/text.h"
#include "launch/planning/node_list.h"
#include "launch/planning/refuse.h"
#include "launch/planning/torchrun/translate.h"

namespace fleet {
namespace {

// Slurm numbers its own steps from here on: a batch script, salloc's own shell.
constexpr long long kFirstOwnStep = 0xfffffff0;

std::optional<long long> number(const EnvironmentLookup& environment, const std::string& name) {
  long long value = 0;
  const auto text = environment(name);
  if (!text || !parse_int(*text, &value) || value < 0) return std::nullopt;
  return value;
}

void add(ConfigTree* tree, const std::string& key, const std::string& value,
         const std::string& variable) {
  if (!tree->peek(key)) tree->set(key, value, "environment " + variable);
}

bool as_torchrun(const ConfigTree& tree) { return tree.peek("compat").value_or("") == "torchrun"; }

// The step that this process is a task of.
struct Step {
  long long job = 0, step = 0;
  std::string list;  // its nodes
  long long nodes = 0, tasks = 0, node_index = 0, task = 0;

  std::string name() const { return slurm_job_name(std::to_string(job), std::to_string(step)); }
  // Below the log folder: the tasks of a step share a file system and a command line.
  std::string folder() const {
    if (tasks == 1) return {};
    return tasks == nodes ? "/node" + std::to_string(node_index) : "/task" + std::to_string(task);
  }
};

std::optional<Step> own_step(const EnvironmentLookup& environment) {
  if (!in_slurm_step(environment)) return std::nullopt;
  const auto list = environment("SLURM_STEP_NODELIST");
  const auto job = number(environment, "SLURM_JOB_ID"), step = number(environment, "SLURM_STEP_ID"),
             nodes = number(environment, "SLURM_STEP_NUM_NODES"),
             tasks = number(environment, "SLURM_STEP_NUM_TASKS"),
             node_index = number(environment, "SLURM_NODEID");
  if (!list || !job || !step || !nodes || !tasks || !node_index) return std::nullopt;
  return Step{*job,
              *step,
              *list,
              *nodes,
              *tasks,
              *node_index,
              number(environment, "SLURM_PROCID").value_or(0)};
}

// The nodes that the user asks for.
enum class SlurmUse {
  kUnsaid,
  kOne,
  kSeveral,  // a count or a range
  kNamed,    // by addresses: Slurm's nodes play no part
};

SlurmUse nodes_wanted(const ConfigTree& tree) {
  for (const char* key : {"ips", "master", "host", "rank", "servers", "workers"}) {
    if (tree.peek(key)) return SlurmUse::kNamed;
  }
  if (tree.peek("standalone").value_or("") == "true") return SlurmUse::kOne;
  const auto count = tree.peek("nnodes");
  if (!count || tree.origin("nnodes") == kTorchrunDefault) return SlurmUse::kUnsaid;
  return *count == "1" ? SlurmUse::kOne : SlurmUse::kSeveral;
}

// Two jobs from one folder must not share log/workerlog.0. torchrun's logs are apart anyway.
void add_default_logs(const std::string& name, ConfigTree* tree) {
  if (!as_torchrun(*tree)) add(tree, "log_dir", "log/" + name, "SLURM_JOB_ID");
}

// The nodes of a job have one command line, so a folder that the user gives is one for all.
void add_node_logs(const Step& step, ConfigTree* tree) {
  const auto given = tree->peek("log_dir");
  if (!given || as_torchrun(*tree)) return add_default_logs(step.name() + step.folder(), tree);
  tree->set("log_dir", *given + step.folder(), "environment SLURM_NODEID");
}

// Jobs and steps that share a node need separate ports. Each gets 66 ports between 10000 and 29800
// by its number: endpoints of up to 64 ranks, MASTER_PORT and the rendezvous.
void add_ports(const Step& step, ConfigTree* tree) {
  constexpr long long kBlocks = 300, kPorts = 66;
  const long long first = 10'000 + (step.job + 37 * step.step) % kBlocks * kPorts;
  add(tree, "start_port", std::to_string(first), "SLURM_JOB_ID");
  add(tree, "rdzv_port", std::to_string(first + kPorts - 1), "SLURM_JOB_ID");
}

// With --via=slurm only the first node shows the job.
void hide_other_nodes(const Step& step, ConfigTree* tree) {
  if (step.node_index == 0) return;
  add(tree, "part", "true", kEnvVia);
  add(tree, "log_level", "WARNING", kEnvVia);
}

// A task of a step that is a whole job.
void add_separate_job(const Step& step, ConfigTree* tree) {
  const std::string task = step.tasks > 1 ? "." + std::to_string(step.task) : "";
  add(tree, "job_id", step.name() + task, "SLURM_JOB_ID");
  add_default_logs(step.name() + step.folder(), tree);
}

void check_tasks(const Step& step) {
  if (step.tasks == step.nodes) return;
  // srun takes SLURM_NTASKS of the batch script over --ntasks-per-node.
  const std::string nodes = std::to_string(step.nodes);
  refuse("srun started " + std::to_string(step.tasks) + " fleetrun processes on " + nodes +
             (step.nodes == 1 ? " node" : " nodes"),
         "SLURM_STEP_NUM_TASKS",
         "start one per node with srun --nodes=" + nodes + " --ntasks=" + nodes +
             " --ntasks-per-node=1 fleetrun --nproc_per_node=N ..., or with fleetrun --via=slurm "
             "in the batch script; or give --nnodes=1 if each is a separate job");
}

bool contains_all(const std::vector<ListedNode>& nodes, const std::vector<ListedNode>& some) {
  return std::ranges::all_of(
      some, [&](const ListedNode& one) { return std::ranges::find(nodes, one) != nodes.end(); });
}

// SLURM_NODEID counts the nodes of several components by component, and SLURM_STEP_NODELIST sorts
// them by name.
void check_components(const EnvironmentLookup& environment, const Step& step) {
  if (!in_heterogeneous_job(environment)) return;
  constexpr long long kMostComponents = 128;  // Slurm's own limit
  const long long size = number(environment, "SLURM_HET_SIZE").value_or(0);
  const auto nodes = expand_nodes(step.list, "environment SLURM_STEP_NODELIST");
  for (long long k = 0; k < std::min(size, kMostComponents); ++k) {
    // PACK: the name of older versions.
    for (const char* name : {"SLURM_JOB_NODELIST_HET_GROUP_", "SLURM_JOB_NODELIST_PACK_GROUP_"}) {
      const std::string variable = name + std::to_string(k);
      const auto list = environment(variable);
      if (list && contains_all(expand_nodes(*list, "environment " + variable), nodes)) return;
    }
  }
  refuse("it spans components of a heterogeneous Slurm job",
         "environment SLURM_STEP_NODELIST " + step.list,
         "start one job in each component with srun --het-group=N");
}

// All tasks of a step are one job.
void add_whole_step(const Step& step, bool via_slurm, ConfigTree* tree) {
  check_tasks(step);
  add(tree, "job_id", step.name(), "SLURM_JOB_ID");
  const auto all = expand_nodes(step.list, "environment SLURM_STEP_NODELIST");
  if (static_cast<long long>(all.size()) != step.nodes || step.node_index >= step.nodes) {
    refuse("it lists " + std::to_string(all.size()) + " nodes, but SLURM_STEP_NUM_NODES is " +
               std::to_string(step.nodes) + " and SLURM_NODEID " + std::to_string(step.node_index),
           "environment SLURM_STEP_NODELIST " + step.list, "give --ips yourself");
  }
  if (tree->origin("nnodes") == kTorchrunDefault) tree->remove("nnodes");
  add(tree, "ips", list_text(all), "SLURM_STEP_NODELIST");
  add(tree, "host", all[static_cast<size_t>(step.node_index)].address, "SLURM_NODEID");
  add_node_logs(step, tree);
  add_ports(step, tree);
  if (via_slurm) hide_other_nodes(step, tree);
}

void add_step(const EnvironmentLookup& environment, const Step& step, ConfigTree* tree) {
  const SlurmUse wanted = nodes_wanted(*tree);
  if (wanted == SlurmUse::kNamed) return add_default_logs(step.name() + step.folder(), tree);
  const bool via_slurm = environment(kEnvVia) == "slurm";
  // torchrun has one node by default, but not through --via=slurm.
  const bool one =
      wanted == SlurmUse::kOne || (wanted == SlurmUse::kUnsaid && as_torchrun(*tree) && !via_slurm);
  if (one) return add_separate_job(step, tree);
  check_components(environment, step);
  if (step.nodes == 1 && step.tasks == 1 && wanted == SlurmUse::kUnsaid) {
    return add_separate_job(step, tree);
  }
  add_whole_step(step, via_slurm, tree);
}

// A batch script, or a shell of salloc.
std::vector<std::string> add_allocation(const EnvironmentLookup& environment, ConfigTree* tree) {
  const SlurmUse wanted = nodes_wanted(*tree);
  if (wanted == SlurmUse::kSeveral) {
    tree->set("via", "slurm", "environment SLURM_JOB_ID");
    return {};
  }
  const std::string job = *environment("SLURM_JOB_ID"), name = slurm_job_name(job, "");
  add_default_logs(name, tree);
  if (wanted == SlurmUse::kNamed) return {};
  add(tree, "job_id", name, "SLURM_JOB_ID");
  if (wanted == SlurmUse::kOne) return {};
  const long long nodes = number(environment, "SLURM_JOB_NUM_NODES").value_or(1);
  if (in_heterogeneous_job(environment)) {
    return {"this job uses only this node of the heterogeneous Slurm job " + job +
            "; srun --het-group=N starts one in another component, and --nnodes=1 says that this "
            "node is enough"};
  }
  if (nodes < 2) return {};
  return {"this job uses only this node of the " + std::to_string(nodes) + " of Slurm job " + job +
          "; --via=slurm uses them all, and --nnodes=1 says that one is enough"};
}

}  // namespace

std::vector<std::string> add_slurm_settings(const EnvironmentLookup& environment,
                                            ConfigTree* tree) {
  if (!tree->peek("via").value_or("").empty()) return {};
  if (const auto step = own_step(environment)) {
    add_step(environment, *step, tree);
    return {};
  }
  return in_slurm_allocation(environment) ? add_allocation(environment, tree)
                                          : std::vector<std::string>();
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

bool in_heterogeneous_job(const EnvironmentLookup& environment) {
  return number(environment, "SLURM_HET_SIZE").value_or(0) > 1;
}

std::string slurm_job_name(const std::string& job, const std::string& step) {
  return "slurm-" + job + (step.empty() ? "" : "." + step);
}

}  // namespace fleet
