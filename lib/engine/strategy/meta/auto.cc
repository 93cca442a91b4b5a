#include "base/log.h"
#include "strategy/meta_optimizer.h"

namespace fleet {

// The choice needs the cost of a step, so it is made above this module, in
// train/choose_strategy.h, before a Program is built: it sets fields of other meta-optimizers.
FLEET_META_OPTIMIZER(auto) {
  def.help =
      "if memory does not suffice, chooses sharding, recompute and gradient_merge when the job "
      "starts: the fastest that fits, by the predicted time of a step";
  def.position = 1;
  def.fields = {"auto"};
  def.requested = [](const StrategyProto& proto) { return proto.auto_(); };
  def.check = [](const StrategyProto&, const PassContext& context) {
    if (context.rank == 0) {
      spdlog::info(
          "strategy: auto: if memory does not suffice, sharding, recompute and gradient_merge are "
          "chosen when the job starts");
    }
  };
  def.when =
      "if a model may not fit into the memory; `fleet-worker --explain` shows the choice in "
      "advance";
  def.cost = "the time of the chosen settings";
}

}  // namespace fleet
