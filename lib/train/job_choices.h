// Keys of a job file whose value decides which other keys there are: optimizer.name,
// learning_rate.name, model.name and data.source.
#pragma once

#include <string>
#include <vector>

#include "base/config.h"

namespace fleet {

// What the names in `tree` choose, each below its section ("optimizer", ...). kUsage for an unknown
// model, source, optimizer or schedule, and where there is no model.
Schema chosen_sections(const ConfigTree& tree);

// Overrides have changed `before` to `tree`: where one of them chose another name, the keys that
// only the former has go, but for those that overrides set too. A line on each section that loses
// keys.
std::vector<std::string> drop_keys_of_former(const ConfigTree& before, ConfigTree* tree);

// kUsage naming the keys that belong to another name than the chosen one, and to which.
void refuse_keys_of_others(const ConfigTree& tree);

// Whether overrides (--set, --device, ...) set a value of this origin.
bool from_override(const std::string& origin);

}  // namespace fleet
