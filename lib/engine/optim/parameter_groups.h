// Settings for some parameters by name: which are not trained, and which have their own rate or
// weight decay. Patterns are shell patterns (fnmatch(3)): "layer1.*", "*.bias".
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
  double rate = 1;                          // factor for the schedule's rate
  std::optional<double> weight_decay = {};  // instead of the optimizer's
};

// Text for an error about a pattern that matches none of these names: the nearest name, or pattern
// of names ("fc3.*"), if one is close; otherwise some of the names.
std::string hint_for_pattern(const std::string& pattern, const std::vector<std::string>& names);

bool matches_pattern(const std::string& pattern, const std::string& parameter);
bool matches_any(const std::vector<std::string>& patterns, const std::string& parameter);

// Parses the optimizer's key "groups". kUsage for invalid text.
std::vector<ParameterGroup> parameter_groups(const Settings& optimizer);
// The first group whose pattern matches this parameter; null: none.
const ParameterGroup* group_of(const std::vector<ParameterGroup>& groups,
                               const std::string& parameter);

// kUsage naming the first pattern of the keys "frozen", "groups" and those of other keys with
// patterns that matches no parameter.
void check_parameter_patterns(const Program& program, const Settings& optimizer);

// Makes parameters that match the optimizer's key "frozen" untrainable: they get no gradients and
// no updates. Call before the backward pass. Returns their number. kUsage if nothing would be left
// to train.
int freeze_parameters(Program& program, const Settings& optimizer);

}  // namespace fleet
