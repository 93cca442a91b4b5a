// The environment variables of accelerate launch.
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/env.h"
#include "base/text.h"
#include "launch/planning/compat/accelerate.h"
#include "launch/planning/secret_names.h"

namespace fleet {
namespace {

std::string python_number(double number) {
  const double size = std::abs(number);
  const bool plain = number == 0 || (size >= 1e-4 && size < 1e16);
  char text[32];
  const auto format = plain ? std::chars_format::fixed : std::chars_format::scientific;
  const std::string shortest(text, std::to_chars(text, text + sizeof text, number, format).ptr);
  return plain && shortest.find('.') == std::string::npos ? shortest + ".0" : shortest;
}

// Reads arguments and collects variables.
class Environment {
 public:
  explicit Environment(const AccelerateArguments& arguments) : arguments_(arguments) {}

  Json value(const std::string& name) const {
    const auto found = arguments_.find(name);
    return found == arguments_.end() ? Json() : found->second;
  }
  std::string text(const std::string& name) const { return python_text(value(name)); }

  void set(const std::string& variable, std::string text) {
    all.emplace_back(variable, std::move(text));
  }
  void copy(const std::string& name, const std::string& variable) { set(variable, text(name)); }
  void copy_lower(const std::string& name, const std::string& variable) {
    set(variable, lower_case(text(name)));
  }
  // Only if it is not None.
  void copy_given(const std::string& name, const std::string& variable) {
    if (!value(name).is_null()) copy(name, variable);
  }
  void copy_given_lower(const std::string& name, const std::string& variable) {
    if (!value(name).is_null()) copy_lower(name, variable);
  }

  Variables all;

 private:
  const AccelerateArguments& arguments_;
};

// The line has words, which become 1 and 0; a configuration file and the default have truths.
std::vector<std::string> linear_precision(const Json& value) {
  std::vector<std::string> parts;
  if (value.is_array()) {
    for (const Json& part : value.elements()) parts.push_back(python_text(part));
  } else {
    for (const std::string& part : split(python_text(value), ',')) {
      parts.push_back(python_text(
          read_accelerate_value({"", AccelerateOption::Type::kBinary, ""}, part).value_or(Json())));
    }
  }
  parts.resize(3, "False");
  return parts;
}

void add_fp8(Environment* environment) {
  for (const AccelerateOption& option : accelerate_arguments()) {
    const std::string name = option.name;
    if (!name.starts_with("fp8_")) continue;
    if (name != "fp8_override_linear_precision") {
      environment->copy_given(name, "ACCELERATE_" + upper_case(name));
      continue;
    }
    const std::vector<std::string> parts = linear_precision(environment->value(name));
    const char* kinds[] = {"FPROP", "DGRAD", "WGRAD"};
    for (size_t i = 0; i < 3; ++i) {
      environment->set(std::string("ACCELERATE_FP8_OVERRIDE_") + kinds[i], parts[i]);
    }
  }
}

void add_precision(Environment* environment) {
  if (environment->value("debug") == Json(true)) {
    environment->set("ACCELERATE_DEBUG_MODE", "true");
  }
  environment->copy_lower("mixed_precision", "ACCELERATE_MIXED_PRECISION");
  if (lower_case(environment->text("mixed_precision")) == "fp8") add_fp8(environment);
}

void add_dynamo(Environment* environment) {
  environment->set("ACCELERATE_DYNAMO_BACKEND", upper_case(environment->text("dynamo_backend")));
  for (const char* name : {"mode", "use_fullgraph", "use_dynamic", "use_regional_compilation"}) {
    const std::string option = std::string("dynamo_") + name;
    environment->copy(option, "ACCELERATE_" + upper_case(option));
  }
}

void add_fsdp(Environment* environment) {
  environment->set("ACCELERATE_USE_FSDP", "true");
  environment->copy("fsdp_version", "FSDP_VERSION");
  environment->copy("fsdp_sharding_strategy", "FSDP_SHARDING_STRATEGY");
  environment->copy_lower("fsdp_reshard_after_forward", "FSDP_RESHARD_AFTER_FORWARD");
  environment->copy_lower("fsdp_offload_params", "FSDP_OFFLOAD_PARAMS");
  environment->copy("fsdp_min_num_params", "FSDP_MIN_NUM_PARAMS");
  environment->copy_given("fsdp_auto_wrap_policy", "FSDP_AUTO_WRAP_POLICY");
  environment->copy_given("fsdp_transformer_layer_cls_to_wrap", "FSDP_TRANSFORMER_CLS_TO_WRAP");
  environment->copy_given("fsdp_backward_prefetch", "FSDP_BACKWARD_PREFETCH");
  environment->copy_given("fsdp_state_dict_type", "FSDP_STATE_DICT_TYPE");
  for (const char* name :
       {"forward_prefetch", "use_orig_params", "cpu_ram_efficient_loading", "sync_module_states",
        "activation_checkpointing", "activation_checkpointing_offload"}) {
    const std::string option = std::string("fsdp_") + name;
    environment->copy_lower(option, upper_case(option));
  }
  environment->copy_given("fsdp_ignored_modules", "FSDP_IGNORED_MODULES");
}

// All arguments that begin so, in variables of the same name.
void copy_all(const std::string& start, Environment* environment) {
  for (const AccelerateOption& option : accelerate_arguments()) {
    const std::string name = option.name;
    if (name.starts_with(start)) environment->copy_given(name, upper_case(name));
  }
}

void add_deepspeed(Environment* environment) {
  const char* path = "PYTHONPATH";
  const std::string before = get_env(path).value_or("");
  std::error_code gone;
  const std::string folder = std::filesystem::current_path(gone).string();
  environment->set(path, (before.empty() ? "" : before + ":") + folder);
  environment->copy_lower("deepspeed_fields", "ACCELERATE_CONFIG_DS_FIELDS");
  environment->set("ACCELERATE_USE_DEEPSPEED", "true");
  environment->copy_given("zero_stage", "ACCELERATE_DEEPSPEED_ZERO_STAGE");
  environment->copy_given("gradient_accumulation_steps", "ACCELERATE_GRADIENT_ACCUMULATION_STEPS");
  environment->copy_given_lower("gradient_clipping", "ACCELERATE_GRADIENT_CLIPPING");
  environment->copy_given_lower("offload_optimizer_device",
                                "ACCELERATE_DEEPSPEED_OFFLOAD_OPTIMIZER_DEVICE");
  environment->copy_given_lower("offload_param_device",
                                "ACCELERATE_DEEPSPEED_OFFLOAD_PARAM_DEVICE");
  environment->copy_given_lower("zero3_init_flag", "ACCELERATE_DEEPSPEED_ZERO3_INIT");
  environment->copy_given_lower("zero3_save_16bit_model",
                                "ACCELERATE_DEEPSPEED_ZERO3_SAVE_16BIT_MODEL");
  environment->copy_given("deepspeed_config_file", "ACCELERATE_DEEPSPEED_CONFIG_FILE");
  environment->copy_given("deepspeed_moe_layer_cls_names",
                          "ACCELERATE_DEEPSPEED_MOE_LAYER_CLS_NAMES");
}

void add_parallelism(Environment* environment) {
  environment->set("ACCELERATE_USE_PARALLELISM_CONFIG", "true");
  const auto copy = [&](const char* name) {
    const std::string option = std::string("parallelism_config_") + name;
    environment->copy(option, upper_case(option));
  };
  const auto is_split = [&](const char* size) {
    const Json value = environment->value(std::string("parallelism_config_") + size);
    return value.is_number_integer() && value.get<int64_t>() > 1;
  };
  for (const char* name : {"dp_replicate_size", "dp_shard_size", "tp_size", "cp_size", "cp_backend",
                           "sp_size", "sp_backend"}) {
    copy(name);
  }
  if (is_split("cp_size")) copy("cp_comm_strategy");
  if (!is_split("sp_size")) return;
  for (const char* name :
       {"sp_seq_length", "sp_seq_length_is_variable", "sp_attn_implementation"}) {
    copy(name);
  }
}

// psutil.cpu_count(logical=False)
int physical_cores() {
  std::set<std::string> cores;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator("/sys/devices/system/cpu", none)) {
    for (const char* file : {"/topology/core_cpus_list", "/topology/thread_siblings_list"}) {
      std::string siblings;
      std::getline(std::ifstream(entry.path().string() + file), siblings);
      if (siblings.empty()) continue;
      cores.insert(siblings);
      break;
    }
  }
  return static_cast<int>(cores.size());
}

// On CPUs, accelerate divides the cores unless the user has decided.
std::string threads_per_process(const Environment& environment, bool on_cpus) {
  if (!environment.value("num_cpu_threads_per_process").is_null()) {
    return environment.text("num_cpu_threads_per_process");
  }
  const std::string given = get_env("OMP_NUM_THREADS").value_or("");
  if (!given.empty() && given != "0") return given;
  const Json processes = environment.value("num_processes");
  const int ranks = processes.is_number_integer() ? processes.get<int>() : 0;
  const int share = on_cpus && ranks >= 1 ? physical_cores() / ranks : 1;
  return std::to_string(share > 1 ? share : 1);
}

}  // namespace

std::string python_text(const Json& value) {
  if (value.is_null()) return "None";
  if (value.is_boolean()) return value.get<bool>() ? "True" : "False";
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) return python_number(value.get<double>());
  return value.dump_lossy();
}

Variables accelerate_variables(const AccelerateArguments& arguments, AccelerateLauncher launcher) {
  using enum AccelerateLauncher;
  Environment environment(arguments);
  const bool on_cpus = is_true(arguments, "cpu") || is_true(arguments, "use_cpu");
  if (launcher == kOneProcess) environment.set("ACCELERATE_USE_CPU", on_cpus ? "True" : "False");
  if (launcher == kOneProcess && on_cpus) {
    environment.set("KMP_AFFINITY", "granularity=fine,compact,1,0");
    environment.set("KMP_BLOCKTIME", "1");
  }
  add_precision(&environment);
  if (launcher == kDeepSpeed) {
    add_deepspeed(&environment);
  } else {
    add_dynamo(&environment);
    environment.set("OMP_NUM_THREADS", threads_per_process(environment, on_cpus));
  }
  if (launcher == kTorchrun && is_true(arguments, "use_fsdp")) add_fsdp(&environment);
  if (launcher == kTorchrun && is_true(arguments, "use_megatron_lm")) {
    environment.set("ACCELERATE_USE_MEGATRON_LM", "true");
    copy_all("megatron_lm_", &environment);
  }
  if (is_true(arguments, "enable_cpu_affinity")) environment.set("ACCELERATE_CPU_AFFINITY", "1");
  if (launcher != kOneProcess && is_true(arguments, "use_parallelism_config")) {
    add_parallelism(&environment);
  }
  return std::move(environment.all);
}

}  // namespace fleet
