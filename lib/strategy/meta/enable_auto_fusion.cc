#include "strategy/meta_optimizer.h"

namespace fleet {

// Where the user left it unset, fleetrun fuses (Paddle does not).
FLEET_META_OPTIMIZER(enable_auto_fusion) {
  def.help = "sums of gradients are joined with the operation that made their last addend";
  def.position = 210;
  switch_pass(def, {.field = "build_strategy.enable_auto_fusion",
                    .unset = true,
                    .phase = PassPhase::kFuseBackward,
                    .pass = "fuse_gradient_sums"});
}

}  // namespace fleet
