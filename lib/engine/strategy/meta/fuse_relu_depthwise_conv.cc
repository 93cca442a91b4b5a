#include "strategy/meta_optimizer.h"

namespace fleet {

// Runs after fuse_bn_act, which fuses a relu that follows a batch normalisation.
FLEET_META_OPTIMIZER(fuse_relu_depthwise_conv) {
  def.help = "a depthwise convolution applies the preceding relu";
  def.position = 140;
  switch_pass(def, {.field = "build_strategy.fuse_relu_depthwise_conv",
                    .unset = false,
                    .phase = PassPhase::kFuseForward,
                    .pass = "fuse_relu_depthwise_conv"});
  def.when = "for separable networks with a relu directly before a depthwise convolution";
  def.cost =
      "nothing: the relu's result is not stored; if fuse_bn_act already fused the relu, a log line "
      "reports it";
  def.figure =
      "the units of a separable network: activations 2.75 MiB instead of 3.75 "
      "(docs/performance/fusions.md)";
}

}  // namespace fleet
