// Settings for mixed precision of a strategy: amp and amp_configs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "strategy/meta_optimizer.h"

namespace fleet {

struct LossScaling {  // amp_configs, with Paddle's defaults
  double initial = 32768;
  bool dynamic = true;
  int64_t incr_every_n_steps = 1000, decr_every_n_nan_or_inf = 2;
  double incr_ratio = 2, decr_ratio = 0.8;
};

struct AmpStrategy {
  std::optional<DType>
      wanted;         // dtype, use_pure_fp16, use_pure_bf16; nullopt: the backend's choice
  bool pure = false;  // use_pure_fp16 or use_pure_bf16
  std::vector<std::string> white_list, black_list, black_variables;  // custom_...
  LossScaling scaling;
  bool scaling_given = false;  // the user set one of its keys
};

// Checks amp_configs. kUsage, kUnsupported naming the field.
AmpStrategy check_amp(const StrategyProto& proto);

// The type of the forward part, one of context.low_types, which are some. Logs the choice if it is
// not the requested one.
DType choose_low_type(const AmpStrategy& amp, const PassContext& context);

}  // namespace fleet
