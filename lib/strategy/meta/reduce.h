// Reduce mode (build_strategy.reduce_strategy): parameters are updated by their owners.
#pragma once

#include "passes/pass.h"
#include "strategy/strategy_file.h"

namespace fleet {

// Whether the strategy asks for it in a job of several ranks.
bool reduces_to_owners(const StrategyProto& proto, const PassContext& context);

}  // namespace fleet
