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
  def.when = "for separable networks whose relu stands right in front of a depthwise convolution";
  def.cost =
      "nothing: it saves the relu's result; where fuse_bn_act took the relu in, a line says so";
  def.figure =
      "the units of a separable network: activations 2.75 MiB, without 3.75 (docs/performance.md)";
}

}  // namespace fleet
