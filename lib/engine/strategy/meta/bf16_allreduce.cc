#include "strategy/meta/narrow_gradients.h"

namespace fleet {

// Not in Paddle. It competes with the others as fp16_allreduce does, and loses against that.
FLEET_META_OPTIMIZER(bf16_allreduce) {
  def.help = "gradients are exchanged in bfloat16";
  narrow_gradients(def, "bf16_allreduce", DType::kBFloat16);
  def.paddle_class = "FP16AllReduceOptimizer in bfloat16";
  def.cost =
      "sums have bfloat16's precision of 8 bits, and float32's range; two casts per gradient";
  def.figure =
      "half the bytes on the wire; half the memory for gradients (`scripts/bench.sh "
      "strategy_costs`)";
}

}  // namespace fleet
