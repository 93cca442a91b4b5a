// Values of a model that settings name: blocks and variables of the forward section.
#pragma once

#include <string>

#include "strategy/meta_optimizer.h"

namespace fleet {

// The output of the block, or the variable, of this name. kUsage naming the setting, similar names,
// and the words (such as "every block, ") and blocks that it may contain.
VarId find_value(const BuildContext& build, const std::string& name, const std::string& setting,
                 const std::string& words = "");

// kUsage if a fusion has absorbed the value since.
void require_value(const BuildContext& build, VarId id, const std::string& setting);

}  // namespace fleet
