#include "base/log.h"
#include "strategy/meta_optimizer.h"

namespace fleet {

FLEET_META_OPTIMIZER(mkldnn_enabled_op_types) {
  def.help = "operations that may use oneDNN on the CPU: no effect";
  def.fields = {"build_strategy.mkldnn_enabled_op_types"};
  def.requested = [](const StrategyProto& proto) {
    return proto.build_strategy().mkldnn_enabled_op_types_size() > 0;
  };
  def.create = [](const StrategyProto&, const PassContext&) -> std::unique_ptr<MetaOptimizer> {
    spdlog::info(
        "strategy: mkldnn_enabled_op_types has no effect: each operation has one kernel on the "
        "CPU, oneDNN's if that is the faster one");
    return nullptr;
  };
  def.when = "never: the option exists for scripts of Paddle 1";
  def.cost = "nothing";
}

}  // namespace fleet
