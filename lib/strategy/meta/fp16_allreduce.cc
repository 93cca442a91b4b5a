#include "strategy/meta_optimizer.h"

namespace fleet {

// Under amp gradients of low operations are reduced in the low type anyway.
FLEET_META_OPTIMIZER(fp16_allreduce) {
  def.help = "gradients travel in float16";
  def.position = 320;
  switch_pass(def, {.field = "fp16_allreduce",
                    .unset = false,
                    .phase = PassPhase::kGradients,
                    .pass = "fp16_allreduce"});
  def.paddle_class = "FP16AllReduceOptimizer";
  def.wraps = {"lars", "lamb", "recompute", "localsgd", "gradient_merge", "adaptive_localsgd"};
}

}  // namespace fleet
