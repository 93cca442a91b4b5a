#include "strategy/meta_optimizer.h"

namespace fleet {

// Where the user left it unset, fleetrun fuses (Paddle does not).
FLEET_META_OPTIMIZER(fuse_all_optimizer_ops) {
  def.help = "the updates of parameters are one operation for each kind";
  def.position = 410;
  switch_pass(def, {.field = "build_strategy.fuse_all_optimizer_ops",
                    .unset = true,
                    .phase = PassPhase::kFuseUpdate,
                    .pass = "fuse_all_optimizer_ops"});
  def.when = "always: most for networks of many small parameters";
  def.cost = "nothing: it saves a launch for each parameter";
}

}  // namespace fleet
