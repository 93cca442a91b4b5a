#include "launch/planning/torchrun/translate.h"

#include <unistd.h>

#include <algorithm>

#include "base/env.h"
#include "base/text.h"
#include "launch/planning/devices.h"
#include "launch/planning/refuse.h"
#include "launch/planning/topology.h"

namespace fleet {
namespace {

// torchrun's environment variables and the settings that they set.
struct OptionVariable {
  const char* variable;
  const char* key;
  bool is_switch = false;
};
constexpr OptionVariable kOptionVariables[] = {
    {"PET_NNODES", "nnodes"},
    {"PET_NPROC_PER_NODE", "nproc_per_node"},
    {"PET_RDZV_BACKEND", "rdzv_backend"},
    {"PET_RDZV_ENDPOINT", "rdzv_endpoint"},
    {"PET_RDZV_ID", "job_id"},
    {"PET_RDZV_CONF", "rdzv_conf"},
    {"PET_STANDALONE", "standalone", true},
    {"PET_MAX_RESTARTS", "max_restart"},
    {"PET_ROLE", "role"},
    {"PET_MODULE", "module", true},
    {"PET_NO_PYTHON", "no_python", true},
    {"PET_RUN_PATH", "run_path", true},
    {"PET_LOG_DIR", "log_dir"},
    {"PET_REDIRECTS", "redirects"},
    {"PET_TEE", "tee"},
    {"PET_LOG_LINE_PREFIX_TEMPLATE", "log_line_prefix_template"},
    {"TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE", "log_line_prefix_template"},
    {"PET_LOCAL_RANKS_FILTER", "local_ranks_filter"},
    {"PET_DUPLICATE_STDOUT_FILTERS", "duplicate_stdout_filters"},
    {"PET_DUPLICATE_STDERR_FILTERS", "duplicate_stderr_filters"},
    {"PET_NODE_RANK", "rank"},
    {"PET_MASTER_ADDR", "master_addr"},
    {"PET_MASTER_PORT", "master_port"},
    {"PET_LOCAL_ADDR", "local_addr"},
    {"PET_SIGNALS_TO_HANDLE", "signals_to_handle"},
    {"PET_SHUTDOWN_TIMEOUT", "grace"},
    {"TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "grace"},
    {"PET_VIRTUAL_LOCAL_RANK", "virtual_local_rank", true},
};
// Variables of options that have no effect here.
constexpr struct {
  const char* variable;
  const char* why;
} kIgnoredVariables[] = {{"PET_MONITOR_INTERVAL", "fleetrun notices the end of a rank at once"},
                         {"PET_START_METHOD", "fleetrun starts programs, not functions"},
                         {"PET_EVENT_LOG_HANDLER", "verdict.json records how a job ended"}};

struct Default {
  const char* key;
  const char* value;
};
constexpr Default kDefaults[] = {
    {"nproc_per_node", "1"},       {"job_id", "none"},      {"max_restart", "0"},
    {"no_progress_restarts", "0"}, {"grace", "30"},         {"dialect", "torch"},
    {"rdzv_timeout", "600"},       {"nnodes", "1"},         {"start_port", "0"},
    {"collapse", "off"},           {"slow_console", "wait"}};

std::string read_switch(const std::string& variable, const std::string& text) {
  long long number = 0;
  if (!parse_int(text, &number)) {
    refuse("'" + text + "' is not a number", "environment " + variable, "use 0 for off, 1 for on");
  }
  return number != 0 ? "true" : "false";
}

// One rank per GPU is fleetrun's own default. With --via, each node counts its GPUs itself.
void one_rank_per_gpu(ConfigTree* tree) { tree->remove("nproc_per_node"); }

void translate_nproc(const TorchrunMachine& machine, ConfigTree* tree) {
  const auto given = tree->peek("nproc_per_node");
  if (!given) return;
  const std::string where = tree->origin("nproc_per_node") + " " + *given;
  const bool elsewhere = !tree->peek("via").value_or("").empty();
  const bool gpus_here = !elsewhere && machine.visible_gpus() > 0;
  if (*given == "xpu") {
    refuse("fleetrun does not count Intel GPUs", where, "give their number: --nproc_per_node=N");
  }
  if (*given == "gpu" && elsewhere && tree->peek("compat").value_or("") == "torchrun") {
    refuse("with --via and torchrun's defaults each node has one rank", where,
           "give a number: --nproc_per_node=N");
  }
  if (*given == "gpu") {
    if (!elsewhere && !gpus_here) {
      refuse("this machine has no visible GPU", where,
             "give a number, or cpu for one rank per core; check CUDA_VISIBLE_DEVICES");
    }
    return one_rank_per_gpu(tree);
  }
  if (*given != "cpu" && *given != "auto") return;  // a number, which the schema checks
  if (elsewhere) {
    refuse("the nodes of --via may have different numbers of cores", where,
           "give a number: --nproc_per_node=N");
  }
  if (*given == "auto" && gpus_here) return one_rank_per_gpu(tree);
  tree->set("nproc_per_node", std::to_string(machine.cpus()), tree->origin("nproc_per_node"));
}

void check_program_options(const ConfigTree& tree) {
  const auto on = [&](const char* key) { return tree.peek(key).value_or("false") == "true"; };
  if (on("module") && on("no_python")) {
    refuse("it contradicts --no_python", tree.origin("module"), "give only one of them");
  }
}

}  // namespace

TorchrunMachine torchrun_machine() {
  return {get_env, [] { return visible_gpu_count(find_gpus()); },
          [] { return std::max(1, static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN))); },
          [](const std::string& address) { return is_local(host_facts(), address); }};
}

bool is_torchrun_mode(const Settings& settings) { return settings.text("compat") == "torchrun"; }

void add_torchrun_defaults(ConfigTree* tree) {
  for (const Default& one : kDefaults) tree->set(one.key, one.value, kTorchrunDefault);
}

void add_torchrun_environment(const TorchrunMachine& machine, ConfigTree* tree) {
  for (const OptionVariable& entry : kOptionVariables) {
    const auto value = machine.environment(entry.variable);
    const bool is_default = tree->origin(entry.key) == kTorchrunDefault;
    if (!value || value->empty() || (tree->peek(entry.key) && !is_default)) continue;
    tree->set(entry.key, entry.is_switch ? read_switch(entry.variable, *value) : *value,
              std::string("environment ") + entry.variable);
  }
}

std::vector<IgnoredFlag> translate_torchrun(const TorchrunMachine& machine, ConfigTree* tree) {
  std::vector<IgnoredFlag> ignored;
  for (const auto& entry : kIgnoredVariables) {
    if (machine.environment(entry.variable)) ignored.push_back({entry.variable, entry.why});
  }
  const bool listed = tree->peek("ips") || tree->peek("servers");
  if (listed && tree->origin("nnodes") == kTorchrunDefault) tree->remove("nnodes");
  if (listed && tree->origin("nproc_per_node") == kTorchrunDefault) tree->remove("nproc_per_node");
  translate_nproc(machine, tree);
  translate_rendezvous(tree, &ignored);
  translate_local_address(machine, tree, &ignored);
  check_program_options(*tree);
  return ignored;
}

}  // namespace fleet
