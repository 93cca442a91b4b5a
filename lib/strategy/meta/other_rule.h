// For meta-optimizers that update parameters by another rule than the job's optimizer.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/config.h"

namespace fleet {

// The settings of optimizer `rule` with these values of its own, by key, and with the gradients'
// clipping of `inner`. A weight decay of `inner` is part of the gradient there, and becomes
// coupled_weight_decay. kUsage where `inner` excludes parameters from it: the rule cannot.
Settings other_rule(const Settings& inner, const std::string& rule,
                    const std::vector<std::pair<std::string, std::string>>& values);

// The shortest text that reads as this value.
std::string text_of_float(float value);

}  // namespace fleet
