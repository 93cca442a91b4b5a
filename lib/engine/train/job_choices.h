// Keys of a job file whose value decides which other keys exist: task, optimizer.name,
// learning_rate.name, model.name and data.source.
#pragma once

#include <string>
#include <vector>

#include "base/config.h"

namespace fleet {

// The schemas chosen by the names in `tree`, each below its section ("optimizer", ...). kUsage for
// an unknown task, model, source, optimizer or schedule, and if there is no model.
Schema chosen_sections(const ConfigTree& tree);

// Call after overrides have changed `before` to `tree`: if an override chose another name, drops
// the keys that only the former one has, except keys that overrides set too. Returns a line for
// each section that loses keys.
std::vector<std::string> drop_keys_of_former(const ConfigTree& before, ConfigTree* tree);

// Throws kUsage naming the keys that do not belong to the chosen name, and the names they belong
// to.
void refuse_keys_of_others(const ConfigTree& tree);

// Whether overrides (--set, --device, ...) set a value of this origin.
bool from_override(const std::string& origin);

}  // namespace fleet
