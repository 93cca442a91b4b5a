// For meta-optimizers that replace the update rule of the job's optimizer.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/config.h"

namespace fleet {

// The settings of optimizer `rule` with the given values, by key, and with the gradient clipping of
// `inner`. A weight decay of `inner` is part of the gradient there, so it becomes
// coupled_weight_decay. kUsage if `inner` excludes parameters from it, which the rule does not
// support.
Settings replacement_rule(const Settings& inner, const std::string& rule,
                          const std::vector<std::pair<std::string, std::string>>& values);

// The shortest text that parses as this value.
std::string text_of_float(float value);

}  // namespace fleet
