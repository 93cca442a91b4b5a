#include "strategy/meta_optimizer.h"

namespace fleet {

// If the user did not set it, fleetrun fuses (Paddle does not).
FLEET_META_OPTIMIZER(fuse_all_optimizer_ops) {
  def.help = "updates of parameters are fused into one operation per kind";
  def.position = 410;
  switch_pass(def, {.field = "build_strategy.fuse_all_optimizer_ops",
                    .unset = true,
                    .phase = PassPhase::kFuseUpdate,
                    .pass = "fuse_all_optimizer_ops"});
  def.when = "always, especially for networks with many small parameters";
  def.cost = "nothing: it saves a launch for each parameter";
}

}  // namespace fleet
