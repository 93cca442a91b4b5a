// Configuration files of accelerate launch.
#include <algorithm>
#include <filesystem>
#include <span>

#include "base/env.h"
#include "base/error.h"
#include "base/home_folder.h"
#include "base/regular_file.h"
#include "base/text.h"
#include "launch/planning/compat/accelerate.h"
#include "launch/planning/compat/yaml.h"
#include "launch/planning/refuse.h"

namespace fleet {
namespace {

constexpr int64_t kLargestConfig = 1 << 20;

// Sections of arguments, and how the names of their keys may begin without it.
struct Section {
  const char* name;
  const char* prefix;
};
constexpr Section kSections[] = {{"deepspeed_config", ""},     {"fsdp_config", "fsdp_"},
                                 {"megatron_lm_config", ""},   {"parallelism_config", ""},
                                 {"dynamo_config", "dynamo_"}, {"mpirun_config", ""},
                                 {"fp8_config", "fp8_"}};
// Keys that are read apart, or have no effect on the ranks.
constexpr const char* kOtherKeys[] = {"compute_environment",
                                      "distributed_type",
                                      "mixed_precision",
                                      "debug",
                                      "fp16",
                                      "dynamo_backend",
                                      "rdzv_backend",
                                      "same_network",
                                      "tpu_name",
                                      "main_training_function",
                                      "downcast_bf16",
                                      "tpu_zone",
                                      "tpu_use_cluster",
                                      "commands",
                                      "tpu_use_sudo",
                                      "command_file",
                                      "tpu_vm",
                                      "tpu_env"};

// Names of the keys of the file, besides sections.
constexpr const char* kArguments[] = {
    "num_processes",   "machine_rank",      "num_machines",        "gpu_ids",
    "main_process_ip", "main_process_port", "enable_cpu_affinity", "use_cpu"};

bool is_one_of(const std::string& name, std::span<const char* const> names) {
  return std::ranges::any_of(names, [&](const char* one) { return name == one; });
}

const Section* find_section(const std::string& name) {
  const auto found = std::ranges::find(kSections, name, &Section::name);
  return found == std::end(kSections) ? nullptr : found;
}

Json read_config_file(const std::string& path) {
  std::string text;
  try {
    text = read_small_file(path, kLargestConfig);
  } catch (const Error& error) {
    refuse(error.failure(), "--config_file " + path, "correct the path");
  }
  if (!path.ends_with(".json")) return parse_yaml(text, path);
  try {
    return Json::parse(text);
  } catch (const JsonError& error) {
    refuse(error.what(), "--config_file " + path, "correct the file");
  }
}

// Reads one file over the arguments of a line.
class ConfigReader {
 public:
  ConfigReader(std::string path, const std::set<std::string>& given, AccelerateArguments* arguments)
      : path_(std::move(path)), given_(given), arguments_(*arguments) {}

  void read() {
    const Json config = read_config_file(path_);
    if (!config.is_object()) refuse("it is not a mapping", path_, "write it like key: value");
    if (text_of(config, "compute_environment", "LOCAL_MACHINE") != "LOCAL_MACHINE") {
      refuse("fleetrun starts no job at Amazon SageMaker", path_, "use accelerate");
    }
    add_kind(config);
    arguments_["use_cpu"] = false;
    for (const auto& [key, value] : config.items()) add_member(key, value);
    add_defaults(config);
  }

 private:
  static std::string text_of(const Json& config, const char* key, const std::string& initial) {
    const Json* found = config.find(key);
    return found ? python_text(*found) : initial;
  }

  // The kind of training, unless the line has one.
  void add_kind(const Json& config) {
    const std::string kind = text_of(config, "distributed_type", "");
    if (kind.empty()) refuse("it has no distributed_type", path_, "see accelerate config");
    for (const char* given : {"multi_gpu", "tpu", "use_deepspeed", "use_fsdp", "use_megatron_lm"}) {
      if (is_true(arguments_, given)) return;
    }
    if (kind == "XLA") refuse("fleetrun does not support TPUs", path_, "use accelerate");
    arguments_["use_deepspeed"] = kind == "DEEPSPEED";
    arguments_["use_fsdp"] = kind == "FSDP";
    arguments_["use_megatron_lm"] = kind == "MEGATRON_LM";
    arguments_["multi_gpu"] = kind.starts_with("MULTI_") && kind != "MULTI_CPU";
    const Json* parallelism = config.find("parallelism_config");
    arguments_["use_parallelism_config"] = parallelism && !parallelism->empty();
  }

  void add_member(const std::string& key, const Json& value) {
    if (const Section* section = find_section(key)) return add_section(*section, value);
    if (key == "dynamo_backend" && python_text(value) != "NO") set_unless_given(key, value);
    if (key == "use_cpu") arguments_[key] = value;
    if (is_one_of(key, kOtherKeys)) return;
    if (!is_one_of(key, kArguments)) {
      refuse("accelerate has no key '" + key + "'", path_, "correct the file");
    }
    Json& argument = arguments_[key];
    if (argument.is_null()) argument = value;
  }

  void add_section(const Section& section, const Json& values) {
    for (const auto& [key, value] : values.items()) {
      const std::string prefix = section.prefix;
      const bool whole = key.starts_with(prefix.substr(0, prefix.find('_')));
      set_unless_given(whole ? key : prefix + key, value);
    }
    if (std::string_view(section.name) == "deepspeed_config") {
      arguments_["deepspeed_fields"] = join(values.keys(), ",");
    }
  }

  void set_unless_given(const std::string& name, const Json& value) {
    if (!given_.contains(name)) arguments_[name] = value;
  }

  // accelerate's defaults for keys that the file lacks.
  void add_defaults(const Json& config) {
    if (arguments_["num_machines"].is_null()) arguments_["num_machines"] = 1;
    if (arguments_["machine_rank"].is_null()) arguments_["machine_rank"] = 0;
    if (!is_true(arguments_, "debug")) {
      arguments_["debug"] = config.find("debug") && *config.find("debug") == Json(true);
    }
    if (arguments_["mixed_precision"].is_null()) add_precision(config);
    Json& processes = arguments_["num_processes"];
    if (!processes.is_null() && processes != Json(-1)) return;
    if (text_of(config, "distributed_type", "") != "NO") {
      refuse("it has no num_processes", path_, "add it, or give --num_processes");
    }
    processes = 1;
  }

  void add_precision(const Json& config) {
    const Json* precision = config.find("mixed_precision");
    const Json* older = config.find("fp16");
    if (precision && !precision->is_null()) {
      arguments_["mixed_precision"] = *precision;
    } else if (older && *older == Json(true)) {
      arguments_["mixed_precision"] = "fp16";
    } else {
      return;
    }
    std::string fields = python_text(arguments_["deepspeed_fields"]);
    arguments_["deepspeed_fields"] = fields + (fields.empty() ? "" : ",") + "mixed_precision";
  }

  const std::string path_;
  const std::set<std::string>& given_;
  AccelerateArguments& arguments_;
};

}  // namespace

std::string default_accelerate_config() {
  const std::string cache = get_env_path("XDG_CACHE_HOME").value_or(home_folder() + "/.cache");
  const std::string folder =
      get_env_path("HF_HOME").value_or(cache + "/huggingface") + "/accelerate/";
  std::error_code none;
  const std::string path = folder + "default_config.yaml";
  return std::filesystem::is_regular_file(path, none) ? path : std::string();
}

void add_accelerate_config(const std::string& path, const std::set<std::string>& given,
                           AccelerateArguments* arguments) {
  ConfigReader(path, given, arguments).read();
}

}  // namespace fleet
