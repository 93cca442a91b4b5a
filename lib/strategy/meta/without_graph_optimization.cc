#include "base/log.h"
#include "strategy/meta_optimizer.h"

namespace fleet {

// Nothing but a competitor of the others: Paddle's RawProgramOptimizer, which sums gradients there
// where no graph executor does. Here they are summed in any case.
FLEET_META_OPTIMIZER(without_graph_optimization) {
  def.help = "which meta-optimizers go together is decided as by default from Paddle 2.5 on";
  def.fields = {"without_graph_optimization"};
  def.asked = [](const StrategyProto& proto) { return proto.without_graph_optimization(); };
  def.paddle_class = "RawProgramOptimizer";
  def.wraps = {"recompute", "amp", "gradient_merge", "lamb", "lars", "dgc", "localsgd"};
  def.create = [](const StrategyProto&, const PassContext&) -> std::unique_ptr<MetaOptimizer> {
    spdlog::info(
        "strategy: without_graph_optimization: always so; true, it also takes part in Paddle's "
        "choice of what goes together");
    return nullptr;
  };
  def.when = "for strategies written for Paddle 2.5 and later, which competed with it there";
  def.cost = "nothing";
}

}  // namespace fleet
