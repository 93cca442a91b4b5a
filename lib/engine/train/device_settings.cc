#include "train/device_settings.h"

#include <algorithm>

#include "base/env.h"
#include "base/error.h"
#include "base/number_text.h"
#include "base/text.h"
#include "exec/backend.h"
#include "strategy/server_mode.h"
#include "strategy/strategy_file.h"

namespace fleet {
namespace {

struct Flag {
  const char* variable;
  const char* path;
  bool boolean;
  const char* option;  // the backends' option that it sets; null: none
};
constexpr Flag kFlags[] = {
    {"FLAGS_cudnn_exhaustive_search", "strategy.cudnn_exhaustive_search", true,
     "cudnn_exhaustive_search"},
    {"FLAGS_conv_workspace_size_limit", "strategy.conv_workspace_size_limit", false,
     "conv_workspace_size_limit"},
    {"FLAGS_cudnn_batchnorm_spatial_persistent", "strategy.cudnn_batchnorm_spatial_persistent",
     true, nullptr},  // has no effect on any device: the strategy reports it
    {"FLAGS_fuse_parameter_memory_size", "strategy.fuse_grad_size_in_MB", false, nullptr},
    {"FLAGS_fuse_parameter_groups_size", "strategy.fuse_grad_size_in_TFLOPS", false, nullptr},
    {"FLAGS_sync_nccl_allreduce", "strategy.sync_nccl_allreduce", true, nullptr},
    {"FLAGS_mkldnn_enabled_op_types", "strategy.build_strategy.mkldnn_enabled_op_types", false,
     nullptr},
    {"FLAGS_cudnn_deterministic", "train.deterministic", true, nullptr},
    {"FLAGS_fraction_of_gpu_memory_to_use", "train.fraction_of_gpu_memory_to_use", false,
     "memory_fraction"},
    {"FLAGS_enable_cublas_tensor_op_math", "train.enable_cublas_tensor_op_math", true,
     "tensor_op_math"},
    {"FLAGS_check_nan_inf", "train.check_nan_inf", true, nullptr},
};
// Those of jobs with parameter servers.
constexpr Flag kServerFlags[] = {
    {"FLAGS_communicator_max_merge_var_num", "strategy.a_sync_configs.max_merge_var_num", false,
     nullptr},
    {"FLAGS_communicator_send_queue_size", "strategy.a_sync_configs.send_queue_size", false,
     nullptr},
    {"FLAGS_communicator_send_wait_times", "strategy.a_sync_configs.send_wait_times", false,
     nullptr},
    {"FLAGS_communicator_thread_pool_size", "strategy.a_sync_configs.thread_pool_size", false,
     nullptr},
    {"FLAGS_communicator_independent_recv_thread",
     "strategy.a_sync_configs.independent_recv_thread", true, nullptr},
    {"FLAGS_communicator_min_send_grad_num_before_recv",
     "strategy.a_sync_configs.min_send_grad_num_before_recv", false, nullptr},
};
constexpr char kRpcDeadline[] = "FLAGS_rpc_deadline";                             // milliseconds
constexpr const char* kOfGpus[] = {"train.cuda_graph", "train.cudnn_attention"};  // no flags
// Flags that other code reads, or that are meant for programs of other kinds.
constexpr const char* kFlagsElsewhere[] = {"FLAGS_selected_", "FLAGS_START_PORT",
                                           "FLAGS_reader_queue_speed_test_mode"};

std::string truth(const std::string& text, const std::string& where) {
  if (text == "1" || text == "true" || text == "True" || text == "TRUE") return "true";
  if (text == "0" || text == "false" || text == "False" || text == "FALSE") return "false";
  throw Error(ErrorCode::kUsage, "'" + text + "' is neither true nor false", where);
}

std::string seconds(const std::string& milliseconds, const std::string& where) {
  long long value = 0;  // NOLINT(runtime/int): type of parse_int()
  if (!parse_int(milliseconds, &value) || value < 1) {
    throw Error(ErrorCode::kUsage, "'" + milliseconds + "' is not a number of milliseconds", where);
  }
  return format_printf("%.17g", static_cast<double>(value) / 1000);
}

bool is_server_flag(const std::string& name) {
  return name == kRpcDeadline || is_server_variable(name) ||
         std::ranges::any_of(kServerFlags, [&](const Flag& flag) { return name == flag.variable; });
}

bool is_known_flag(const std::string& name, bool servers) {
  if (servers && is_server_flag(name)) return true;
  for (const Flag& flag : kFlags) {
    if (name == flag.variable) return true;
  }
  for (const char* start : kFlagsElsewhere) {
    if (name.starts_with(start)) return true;
  }
  return false;
}

}  // namespace

void apply_flags(ConfigTree& tree) {
  canonicalize_keys(tree);
  for (const Flag& flag : kFlags) {
    const auto text = get_env(flag.variable);
    if (!text) continue;
    const std::string where = std::string("environment ") + flag.variable;
    tree.set(flag.path, flag.boolean ? truth(*text, where) : *text, where);
  }
}

std::vector<std::string> apply_server_flags(ConfigTree& tree) {
  check_server_variables(get_env);
  std::vector<std::string> lines;
  const auto set = [&](const std::string& path, const std::string& value,
                       const std::string& where) {
    const std::string before = tree.peek(path).value_or(value);
    tree.set(path, value, where);
    lines.push_back(where + " sets " + path + " to " + value +
                    (before == value ? "" : ", instead of " + before));
  };
  for (const Flag& flag : kServerFlags) {
    const auto text = get_env(flag.variable);
    if (!text) continue;
    const std::string where = std::string("environment ") + flag.variable;
    set(flag.path, flag.boolean ? truth(*text, where) : *text, where);
  }
  if (const auto deadline = get_env(kRpcDeadline)) {
    const std::string where = std::string("environment ") + kRpcDeadline;
    set("comm.timeout", seconds(*deadline, where), where);
  }
  return lines;
}

DeviceOptions device_options(const Job& job) {
  return {.deterministic = job.train.boolean("deterministic")};
}

ConfigTree backend_options(const Job& job) {
  const StrategyProto strategy = strategy_from(job.strategy);
  const auto text = [](bool value) { return value ? "true" : "false"; };
  const std::string origin = "the job's settings";
  ConfigTree options;
  options.set("tensor_op_math", text(job.train.boolean("enable_cublas_tensor_op_math")), origin);
  options.set("cudnn_exhaustive_search", text(strategy.cudnn_exhaustive_search()), origin);
  options.set("cudnn_attention", text(job.train.boolean("cudnn_attention")), origin);
  options.set("conv_workspace_size_limit", std::to_string(strategy.conv_workspace_size_limit()),
              origin);
  options.set("memory_fraction",
              format_printf("%.17g", job.train.number("fraction_of_gpu_memory_to_use")), origin);
  return options;
}

std::vector<std::string> without_effect(const Job& job, const std::string& backend) {
  std::vector<std::string> keys;
  if (is_accelerator(backend)) return keys;
  const std::vector<std::string> known = options_of_backend(backend);
  for (const Flag& flag : kFlags) {
    if (!flag.option || !job.settings.given(flag.path)) continue;
    if (std::find(known.begin(), known.end(), flag.option) == known.end()) {
      keys.push_back(flag.path);
    }
  }
  for (const char* key : kOfGpus) {
    if (job.settings.given(key)) keys.push_back(key);
  }
  return keys;
}

std::vector<std::string> environment_without_effect(bool servers) {
  std::vector<std::string> lines, unknown;
  for (const std::string& entry : whole_environment()) {
    const std::string name = entry.substr(0, entry.find('='));
    if (name.starts_with("FLAGS_") && !is_known_flag(name, servers)) unknown.push_back(name);
  }
  std::sort(unknown.begin(), unknown.end());
  if (!unknown.empty()) lines.push_back("without effect here: " + join(unknown, ", "));
  const auto places = get_env("CPU_NUM");
  if (places && *places != "1") {
    lines.push_back("CPU_NUM=" + *places +
                    " has no effect: a rank is one process with one copy of the network; fleetrun "
                    "--nproc_per_node=" +
                    *places + " starts as many");
  }
  return lines;
}

DeviceRequest device_request(const std::string& wanted, const std::optional<std::string>& selected,
                             bool launched) {
  if (wanted != "auto" && !is_accelerator(wanted)) return {.name = wanted};
  if (wanted == "auto" && launched && !selected) {
    return {.name = "cpu", .note = "the launcher assigned no GPU to this rank"};
  }
  DeviceRequest request{.name = wanted};
  if (!selected) return request;
  request.assigned = launched;
  long long index = 0;  // NOLINT(runtime/int): type of parse_int()
  for (const std::string& part : split(*selected, ',')) {
    if (!parse_int(part, &index) || index < 0) {
      throw Error(ErrorCode::kUsage, "'" + *selected + "' is not a list of GPUs",
                  "environment FLAGS_selected_gpus", "write numbers separated by commas");
    }
  }
  parse_int(split(*selected, ',').front(), &index);
  request.index = static_cast<int>(index);
  return request;
}

bool feeds_bytes(const Job& job, const std::string& backend) {
  const std::string& pixels = job.data.text("pixels");
  return pixels == "uint8" || (pixels == "auto" && !backend_def(backend).uses_host_memory);
}

}  // namespace fleet
