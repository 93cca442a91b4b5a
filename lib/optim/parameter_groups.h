// What a job says of some parameters by their names: which are not trained, and which have a rate
// or a weight decay of their own. Patterns are the shell's (fnmatch(3)): "layer1.*", "*.bias".
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/config.h"
#include "graph/program.h"

namespace fleet {

// "PATTERN: rate=0.1 weight_decay=0".
struct ParameterGroup {
  std::string pattern;
  double rate = 1;                     // multiplies the schedule's
  std::optional<double> weight_decay;  // in place of the optimizer's
};

bool fits(const std::string& pattern, const std::string& parameter);

// The optimizer's key "groups". kUsage for a text that is none.
std::vector<ParameterGroup> parameter_groups(const Settings& optimizer);
// The first group that this parameter fits; null: none.
const ParameterGroup* group_of(const std::vector<ParameterGroup>& groups,
                               const std::string& parameter);

// Parameters that fit the optimizer's key "frozen" are no longer trainable: no gradient is computed
// of them, and their updates are left out. Before the backward pass. Returns how many there are.
// kUsage where none would be left to train.
int freeze_parameters(Program& program, const Settings& optimizer);

}  // namespace fleet
