#include "strategy/meta_optimizer.h"

namespace fleet {

// If the user did not set it, fleetrun fuses (Paddle does not).
FLEET_META_OPTIMIZER(fuse_elewise_add_act) {
  def.help = "a sum and the relu, tanh or scale before or after it are fused into one operation";
  def.position = 120;
  switch_pass(def, {.field = "build_strategy.fuse_elewise_add_act_ops",
                    .unset = true,
                    .phase = PassPhase::kFuseForward,
                    .pass = "fuse_elewise_add_act"});
  def.when = "always, for sums followed by an activation";
  def.cost = "nothing: it saves a pass over the activations, forward and backward";
  def.figure =
      "ResNet50 on two cores, with fuse_bn_act: 1.00 to 1.01 times the speed of a step "
      "(`scripts/bench.sh fusions`)";
}

}  // namespace fleet
