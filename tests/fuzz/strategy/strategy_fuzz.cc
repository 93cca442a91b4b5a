// A DistributedStrategy in protobuf's text form.
#include "strategy/strategy.h"
#include "strategy/strategy_file.h"
#include "tests/fuzz/fuzz.h"

FLEET_FUZZ(strategy) {
  fleet::StrategyProto proto;
  fleet::read_strategy_text(std::string(bytes), "fuzz.prototxt", &proto);
  fleet::Strategy strategy(proto);
}
