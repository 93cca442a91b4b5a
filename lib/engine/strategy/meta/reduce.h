// Reduce mode (build_strategy.reduce_strategy): each parameter is updated on its owner rank.
#pragma once

#include "passes/pass.h"
#include "strategy/strategy_file.h"

namespace fleet {

// Whether the strategy requests it and the job has several ranks.
bool reduces_to_owners(const StrategyProto& proto, const PassContext& context);

}  // namespace fleet
