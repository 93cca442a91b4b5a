// Options of Hugging Face's accelerate launch. Its configuration file and the variables of its
// library depend on all of them, so they are translated together.
#include "launch/planning/compat/accelerate.h"

#include <algorithm>

#include "base/text.h"
#include "launch/planning/compat/line.h"
#include "launch/planning/devices.h"

namespace fleet {
namespace {

using Type = AccelerateOption::Type;

std::string flag_of(const std::string& name) { return "--" + name; }

// The options of the line. nullopt if a value was refused.
std::optional<std::set<std::string>> read_line(CompatLine& line, AccelerateArguments* arguments) {
  std::set<std::string> given;
  for (const AccelerateOption& option : accelerate_arguments()) {
    if (!line.act_for(flag_of(option.name))) continue;
    const auto value = read_accelerate_value(option, line.value_of(flag_of(option.name)));
    if (!value) {
      const std::string choices = option.choices;
      line.refuse_without_correction("accelerate does not take this value",
                                     choices.empty() ? "give a number" : "it takes " + choices);
      return std::nullopt;
    }
    (*arguments)[option.name] = *value;
    given.insert(option.name);
  }
  return given;
}

// Reads --config_file, or the user's own file, which accelerate leaves out for --cpu.
void read_config(CompatLine& line, const std::set<std::string>& given,
                 AccelerateArguments* arguments) {
  std::string path = line.value_of("--config_file");
  if (!line.act_for("--config_file")) {
    path = is_true(*arguments, "cpu") ? "" : default_accelerate_config();
  }
  if (path.empty()) {
    (*arguments)["use_cpu"] = (*arguments)["cpu"];
    return;
  }
  add_accelerate_config(path, given, arguments);
  line.note("the values of " + path + " apply");
}

int number_of(const Json& value, int otherwise) {
  return value.is_number_integer() ? value.get<int>() : otherwise;
}

// As Python has it: a text is true.
bool is_truthy(const Json& value) {
  return value.is_string() ? !value.get<std::string>().empty() : value == Json(true);
}

// The combination that accelerate refuses; "" if none.
std::string contradiction(const AccelerateArguments& arguments) {
  std::vector<std::string> kinds;
  for (const char* kind : {"multi_gpu", "cpu", "tpu", "use_deepspeed", "use_fsdp"}) {
    if (is_true(arguments, kind)) kinds.push_back(flag_of(kind));
  }
  if (kinds.size() > 1) return "accelerate takes only one of " + join(kinds, " and ");
  const std::string precision = lower_case(python_text(arguments.at("mixed_precision")));
  const std::vector<std::string> known = {"none", "no", "fp16", "bf16", "fp8"};
  if (std::ranges::find(known, precision) == known.end()) {
    return "mixed_precision is '" + precision + "', not 'no', 'fp16', 'bf16' or 'fp8'";
  }
  if (is_true(arguments, "use_fsdp") && is_truthy(arguments.at("fsdp_cpu_ram_efficient_loading")) &&
      !is_truthy(arguments.at("fsdp_sync_module_states"))) {
    return "fsdp_cpu_ram_efficient_loading needs fsdp_sync_module_states";
  }
  return {};
}

// Also what accelerate refuses before it reads a file.
std::string contradiction_of_line(const AccelerateArguments& arguments) {
  if (is_true(arguments, "multi_gpu") && number_of(arguments.at("num_processes"), 2) < 2) {
    return "accelerate needs two processes for --multi_gpu";
  }
  if (is_true(arguments, "use_parallelism_config") && !is_true(arguments, "use_fsdp")) {
    return "accelerate takes --use_parallelism_config only with --use_fsdp";
  }
  return contradiction(arguments);
}

// The feature that fleetrun does not support; "" if none.
std::string unsupported(const AccelerateArguments& arguments) {
  if (is_true(arguments, "tpu")) return "fleetrun does not support TPUs";
  if (!arguments.at("mpirun_hostfile").is_null()) return "fleetrun starts the ranks without MPI";
  const bool on_cpus = is_true(arguments, "cpu") || is_true(arguments, "use_cpu");
  const bool several = number_of(arguments.at("num_processes"), 1) > 1;
  const bool started = is_true(arguments, "multi_gpu") || is_true(arguments, "use_deepspeed") ||
                       is_true(arguments, "use_fsdp") || is_true(arguments, "use_megatron_lm");
  if (on_cpus && several && !started) {
    return "accelerate starts one process on CPUs, and MPI the others; give --nproc_per_node";
  }
  return {};
}

AccelerateLauncher launcher_of(const AccelerateArguments& arguments, int machines) {
  using enum AccelerateLauncher;
  if (is_true(arguments, "cpu")) return kOneProcess;
  if (is_true(arguments, "use_deepspeed")) return kDeepSpeed;
  for (const char* kind : {"use_fsdp", "use_megatron_lm", "multi_gpu"}) {
    if (is_true(arguments, kind)) return kTorchrun;
  }
  if (is_true(arguments, "use_cpu")) return kOneProcess;
  const Json& processes = arguments.at("num_processes");
  const int ranks = processes.is_null() ? visible_gpu_count(find_gpus()) : number_of(processes, 1);
  return ranks > 1 || machines > 1 ? kTorchrun : kOneProcess;
}

// Why an option of the line has no effect; "" if it has one.
std::string idle_reason(const std::string& name, const AccelerateArguments& arguments,
                        AccelerateLauncher launcher) {
  using enum AccelerateLauncher;
  const bool deepspeed = launcher == kDeepSpeed;
  const auto needs = [&](bool met, const std::string& what) {
    return met ? std::string() : "accelerate uses it only with " + what;
  };
  if (name.starts_with("fsdp_")) {
    return needs(launcher == kTorchrun && is_true(arguments, "use_fsdp"), "--use_fsdp");
  }
  if (name.starts_with("megatron_lm_")) {
    return needs(launcher == kTorchrun && is_true(arguments, "use_megatron_lm"),
                 "--use_megatron_lm");
  }
  if (name.starts_with("parallelism_config_")) {
    return needs(is_true(arguments, "use_parallelism_config"), "--use_parallelism_config");
  }
  if (name.starts_with("fp8_")) {
    return needs(python_text(arguments.at("mixed_precision")) == "fp8", "--mixed_precision=fp8");
  }
  if (name.starts_with("dynamo_") || name == "num_cpu_threads_per_process") {
    return deepspeed ? "accelerate does not use it with DeepSpeed" : "";
  }
  if (name.ends_with("_nvme_path")) return "accelerate itself does not use it";
  if (name == "deepspeed_hostfile" || name.ends_with("_filter")) {
    return "only deepspeed's own launcher reads it";
  }
  const bool of_deepspeed = name.starts_with("deepspeed_") || name.starts_with("zero") ||
                            name.starts_with("offload_") || name.starts_with("gradient_");
  return needs(deepspeed || !of_deepspeed, "--use_deepspeed");
}

// The place of the rendezvous, and which machine this is.
void place_machines(const AccelerateArguments& arguments, int machines, CompatLine& line) {
  const auto text = [&](const char* name) {
    const Json& value = arguments.at(name);
    return value.is_null() ? std::string() : python_text(value);
  };
  const std::string port = text("main_process_port"), address = text("main_process_ip");
  if (!text("num_machines").empty()) line.set_option("nnodes", text("num_machines"));
  if (machines < 2) {
    if (!port.empty() && port != "0") line.set_option("master_port", port);
    return;
  }
  if (!text("machine_rank").empty()) line.set_option("rank", text("machine_rank"));
  if (address.empty()) return;
  const bool ipv6 = address.find(':') != std::string::npos;
  line.set_option("master",
                  (ipv6 ? "[" + address + "]" : address) + ":" + (port.empty() ? "29500" : port));
}

// DeepSpeed's own launcher would start the machines.
bool starts_deepspeed(const AccelerateArguments& arguments, CompatLine& line) {
  const std::string how = python_text(arguments.at("deepspeed_multinode_launcher"));
  if (how == "standard" || how == "nossh") return false;
  if (!line.act_for("--deepspeed_multinode_launcher")) line.act_for("--num_machines");
  line.refuse_without_correction(
      "accelerate starts deepspeed, which reaches the machines with " +
          (how == "None" ? "pdsh" : how),
      "give --deepspeed_multinode_launcher=standard, and start fleetrun on every machine");
  return true;
}

// The number of ranks, and their GPUs.
void place_ranks(const AccelerateArguments& arguments, AccelerateLauncher launcher,
                 CompatLine& line) {
  const Json& gpus = arguments.at("gpu_ids");
  if (!gpus.is_null() && python_text(gpus) != "all") {
    line.act_for("--gpu_ids");
    show_only_gpus(python_text(gpus), line);
  }
  const Json& processes = arguments.at("num_processes");
  line.act_for("--num_processes");
  if (launcher == AccelerateLauncher::kOneProcess) return line.set_option("nproc_per_node", "1");
  if (!processes.is_null()) translate_total_ranks(python_text(processes), line);
}

void translate_together(CompatLine& line) {
  if (line.uses_launcher("mpirun") && line.act_for("--debug")) {
    return line.refuse_without_correction("fleetrun starts no debugger for all ranks",
                                          "see fleetrun debug");
  }
  AccelerateArguments arguments = initial_arguments();
  const auto given = read_line(line, &arguments);
  if (!given) return;
  std::string refused = contradiction_of_line(arguments);
  if (refused.empty()) {
    read_config(line, *given, &arguments);
    refused = contradiction(arguments);
  }
  if (refused.empty()) refused = unsupported(arguments);
  if (!refused.empty()) {
    return line.refuse_without_correction(refused, "change the options of accelerate");
  }
  const int machines = number_of(arguments.at("num_machines"), 1);
  const AccelerateLauncher launcher = launcher_of(arguments, machines);
  const bool deepspeed = launcher == AccelerateLauncher::kDeepSpeed;
  if (deepspeed && machines > 1 && starts_deepspeed(arguments, line)) return;
  for (const char* name : {"mixed_precision", "dynamo_backend"}) {
    if (arguments[name].is_null()) arguments[name] = "no";
  }
  for (const std::string& name : *given) {
    const std::string reason = idle_reason(name, arguments, launcher);
    line.act_for(flag_of(name));
    if (!reason.empty()) line.ignore(reason);
  }
  place_machines(arguments, machines, line);
  place_ranks(arguments, launcher, line);
  for (const auto& [name, value] : accelerate_variables(arguments, launcher)) {
    line.export_variable(name + "=" + value);
  }
}

}  // namespace

CompatGroup accelerate_options() {
  CompatGroup group("accelerate");
  group.together = translate_together;
  const auto see_together = [](const std::string&, CompatLine&) {};
  group.translated({"--config_file"}, "FILE", see_together);
  for (const AccelerateOption& option : accelerate_arguments()) {
    const bool is_switch = option.type == Type::kSwitch;
    group.translated({flag_of(option.name)}, is_switch ? "" : "VALUE", see_together);
  }
  group.ignored({"--same_network"}, "", "nodes only need to reach each other");
  group.ignored({"--main_training_function"}, "NAME", "fleetrun starts programs, not functions");
  const std::string tpus = "fleetrun does not support TPUs";
  group.refused({"--tpu_cluster"}, "", tpus);
  group.ignored({"--no_tpu_cluster", "--tpu_use_sudo", "--downcast_bf16"}, "", tpus);
  group.ignored({"--vm", "--env"}, "TEXT", tpus);
  group.ignored({"--aws_access_key_id", "--aws_secret_access_key"}, "TEXT",
                "fleetrun starts no job at Amazon SageMaker");
  return group;
}

}  // namespace fleet
