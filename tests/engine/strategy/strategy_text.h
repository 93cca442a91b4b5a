// Strategies as users write them, for tests.
#pragma once

#include <string>

#include "strategy/strategy.h"

namespace fleet {

inline StrategyProto strategy_proto(const std::string& text) {
  StrategyProto proto;
  read_strategy_text(text, "test", &proto);
  return proto;
}

inline Strategy make_strategy(const std::string& text, const PassContext& context = {}) {
  return Strategy(strategy_proto(text), context);
}

}  // namespace fleet
