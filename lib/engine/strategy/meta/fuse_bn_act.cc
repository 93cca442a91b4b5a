#include "strategy/meta_optimizer.h"

namespace fleet {

// If the user did not set it, fleetrun fuses (Paddle does not).
FLEET_META_OPTIMIZER(fuse_bn_act) {
  def.help = "batch normalisation and the following activation are fused into one operation";
  def.position = 110;
  switch_pass(def, {.field = "build_strategy.fuse_bn_act_ops",
                    .unset = true,
                    .phase = PassPhase::kFuseForward,
                    .pass = "fuse_bn_act"});
  def.when = "always, for networks with batch normalisation";
  def.cost = "nothing: it saves a pass over the activations, forward and backward";
  def.figure =
      "ResNet50 on two cores, with fuse_elewise_add_act: 1.00 to 1.01 times the speed of a step "
      "(`scripts/bench.sh fusions`)";
}

}  // namespace fleet
