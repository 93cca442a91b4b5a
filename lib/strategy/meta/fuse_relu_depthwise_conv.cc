#include "strategy/meta_optimizer.h"

namespace fleet {

// Behind fuse_bn_act, which takes a relu in where there is a batch normalisation in front of it.
FLEET_META_OPTIMIZER(fuse_relu_depthwise_conv) {
  def.help = "a depthwise convolution applies the relu in front of it";
  def.position = 140;
  switch_pass(def, {.field = "build_strategy.fuse_relu_depthwise_conv",
                    .unset = false,
                    .phase = PassPhase::kFuseForward,
                    .pass = "fuse_relu_depthwise_conv"});
}

}  // namespace fleet
