#include "base/log.h"
#include "strategy/meta_optimizer.h"

namespace fleet {

FLEET_META_OPTIMIZER(use_dali) {
  def.help = "read images with DALI: no effect";
  def.fields = {"use_dali"};
  def.requested = [](const StrategyProto& proto) { return proto.use_dali(); };
  def.create = [](const StrategyProto&, const PassContext&) -> std::unique_ptr<MetaOptimizer> {
    spdlog::info(
        "strategy: use_dali has no effect: host threads (data.threads) decode and augment "
        "ahead of the training step, and a GPU receives bytes");
    return nullptr;
  };
  def.when = "never: the option exists for the data loaders of Paddle's documentation";
  def.cost = "nothing";
}

}  // namespace fleet
