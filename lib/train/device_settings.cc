#include "train/device_settings.h"

#include "base/env.h"
#include "base/error.h"
#include "base/text.h"
#include "strategy/strategy_file.h"

namespace fleet {
namespace {

struct Flag {
  const char* variable;
  const char* path;
  bool boolean;
  bool gpu_only;
};
constexpr Flag kFlags[] = {
    {"FLAGS_cudnn_exhaustive_search", "strategy.cudnn_exhaustive_search", true, true},
    {"FLAGS_conv_workspace_size_limit", "strategy.conv_workspace_size_limit", false, true},
    {"FLAGS_cudnn_batchnorm_spatial_persistent", "strategy.cudnn_batchnorm_spatial_persistent",
     true, false},  // on no device: the strategy says so
    {"FLAGS_cudnn_deterministic", "train.deterministic", true, true},
    {"FLAGS_fraction_of_gpu_memory_to_use", "train.fraction_of_gpu_memory_to_use", false, true},
    {"FLAGS_enable_cublas_tensor_op_math", "train.enable_cublas_tensor_op_math", true, true},
    {"FLAGS_check_nan_inf", "train.check_nan_inf", true, false},
};
constexpr const char* kCudaGraph = "train.cuda_graph";

std::string truth(const std::string& text, const std::string& where) {
  if (text == "1" || text == "true" || text == "True" || text == "TRUE") return "true";
  if (text == "0" || text == "false" || text == "False" || text == "FALSE") return "false";
  throw Error(ErrorCode::kUsage, "'" + text + "' is neither true nor false", where);
}

}  // namespace

void apply_flags(ConfigTree& tree) {
  for (const Flag& flag : kFlags) {
    const auto text = get_env(flag.variable);
    if (!text) continue;
    const std::string where = std::string("environment ") + flag.variable;
    tree.set(flag.path, flag.boolean ? truth(*text, where) : *text, where);
  }
}

DeviceOptions device_options(const Job& job) {
  const StrategyProto strategy = strategy_from(job.strategy);
  if (strategy.conv_workspace_size_limit() < 0) {
    throw Error(
        ErrorCode::kUsage,
        "conv_workspace_size_limit is " + std::to_string(strategy.conv_workspace_size_limit()),
        "strategy", "give a number of MiB from 0 up");
  }
  return {.deterministic = job.train.boolean("deterministic"),
          .tensor_op_math = job.train.boolean("enable_cublas_tensor_op_math"),
          .cudnn_exhaustive_search = strategy.cudnn_exhaustive_search(),
          .conv_workspace_size_limit = strategy.conv_workspace_size_limit(),
          .memory_fraction = job.train.number("fraction_of_gpu_memory_to_use")};
}

std::vector<std::string> without_effect(const Job& job, const std::string& backend) {
  std::vector<std::string> keys;
  if (backend == "cuda") return keys;
  for (const Flag& flag : kFlags) {
    if (flag.gpu_only && job.settings.given(flag.path)) keys.push_back(flag.path);
  }
  if (job.settings.given(kCudaGraph)) keys.push_back(kCudaGraph);
  return keys;
}

DeviceWish device_wish(const std::string& wanted, const std::optional<std::string>& selected,
                       bool launched) {
  if (wanted == "cpu") return {.name = "cpu"};
  if (wanted == "auto" && launched && !selected) {
    return {.name = "cpu", .note = "the launcher gave this rank no GPU"};
  }
  DeviceWish wish{.name = wanted};
  if (!selected) return wish;
  long long index = 0;  // NOLINT(runtime/int): parse_int()'s
  for (const std::string& part : split(*selected, ',')) {
    if (!parse_int(part, &index) || index < 0) {
      throw Error(ErrorCode::kUsage, "'" + *selected + "' is no list of GPUs",
                  "environment FLAGS_selected_gpus", "write numbers with commas between");
    }
  }
  parse_int(split(*selected, ',').front(), &index);
  wish.index = static_cast<int>(index);
  return wish;
}

bool feeds_bytes(const Job& job, const std::string& backend) {
  const std::string& pixels = job.data.text("pixels");
  return pixels == "uint8" || (pixels == "auto" && backend != "cpu");
}

}  // namespace fleet
