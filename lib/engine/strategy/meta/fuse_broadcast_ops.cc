#include "base/log.h"
#include "strategy/meta/all_reduce.h"
#include "strategy/meta_optimizer.h"

namespace fleet {

// Files that Paddle 2.6 writes contain it even if it was not set: BuildStrategy's own default is
// true.
FLEET_META_OPTIMIZER(fuse_broadcast_ops) {
  def.help = "updated parameters are broadcast together, in Reduce mode";
  def.fields = {"build_strategy.fuse_broadcast_ops"};
  def.requested = [](const StrategyProto& proto) {
    return proto.build_strategy().fuse_broadcast_ops();
  };
  def.check = [](const StrategyProto& proto, const PassContext& context) {
    if (reduces_to_owners(proto, context)) return;  // strategy/meta/reduce.cc
    spdlog::warn("Currently, fuse_broadcast_ops only works under Reduce mode.");
  };
  def.when = "with reduce_strategy Reduce; otherwise it has no effect, and a log line reports it";
  def.cost = "nothing";
}

}  // namespace fleet
