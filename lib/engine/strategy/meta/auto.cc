#include "base/log.h"
#include "strategy/meta_optimizer.h"

namespace fleet {

// The choice needs the cost of a step, so it is made above this module, in
// train/choose_strategy.h, before a Program is built: it sets fields of other meta-optimizers.
FLEET_META_OPTIMIZER(auto) {
  def.help =
      "settings of the strategy that are not given are chosen when the job starts, from measured "
      "links, memory and the predicted time of a step";
  def.position = 1;
  def.fields = {"auto"};
  def.requested = [](const StrategyProto& proto) { return proto.auto_(); };
  def.create = [](const StrategyProto&,
                  const PassContext& context) -> std::unique_ptr<MetaOptimizer> {
    if (context.rank == 0) {
      spdlog::info(
          "strategy: auto: how gradients are grouped and summed, and, if memory does not suffice, "
          "sharding, recompute and gradient_merge, are chosen when the job starts");
    }
    return nullptr;
  };
  def.when =
      "with several ranks, if you do not know which settings suit the network, the links and the "
      "memory; `fleet-worker --explain` shows the choice in advance";
  def.cost =
      "a few seconds at each start; the rates of a machine are measured once, in 10 to 30 seconds";
}

}  // namespace fleet
