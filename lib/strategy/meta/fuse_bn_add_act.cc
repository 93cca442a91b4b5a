#include "strategy/meta_optimizer.h"

namespace fleet {

FLEET_META_OPTIMIZER(fuse_bn_add_act) {
  def.help = "batch normalisation, a sum and the activation behind it are one operation";
  def.position = 130;
  switch_pass(def, {.field = "build_strategy.fuse_bn_add_act_ops",
                    .unset = true,
                    .phase = PassPhase::kFuseForward,
                    .pass = "fuse_bn_add_act"});
}

}  // namespace fleet
