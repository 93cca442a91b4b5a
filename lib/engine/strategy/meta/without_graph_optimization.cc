#include "base/log.h"
#include "strategy/meta_optimizer.h"

namespace fleet {

// Only a competitor of the others: Paddle's RawProgramOptimizer, which sums gradients there if no
// graph executor does. Here gradients are summed in any case.
FLEET_META_OPTIMIZER(without_graph_optimization) {
  def.help = "meta-optimizers are combined by the default rules of Paddle 2.5 and later";
  def.fields = {"without_graph_optimization"};
  def.requested = [](const StrategyProto& proto) { return proto.without_graph_optimization(); };
  def.obstacle = [](const StrategyProto& proto, const PassContext&) -> std::string {
    return proto.sharding() ? "sharding sums gradients itself" : "";
  };
  def.paddle_class = "RawProgramOptimizer";
  def.wraps = {"recompute", "amp", "gradient_merge", "lamb", "lars", "dgc", "localsgd"};
  def.check = [](const StrategyProto&, const PassContext&) {
    spdlog::info(
        "strategy: without_graph_optimization: not configurable; if true, it also takes part in "
        "Paddle's choice of compatible meta-optimizers");
  };
  def.when =
      "for strategies written for Paddle 2.5 and later, in which other meta-optimizers compete "
      "with it";
  def.cost = "nothing";
}

}  // namespace fleet
