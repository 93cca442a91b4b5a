#include "strategy/meta/narrow_gradients.h"

namespace fleet {

FLEET_META_OPTIMIZER(fp16_allreduce) {
  def.help = "gradients are exchanged in float16";
  narrow_gradients(def, "fp16_allreduce", DType::kFloat16);
  def.paddle_class = "FP16AllReduceOptimizer";
  def.cost =
      "sums have float16's precision of 11 bits, and values above 65504 become infinite; two casts "
      "per gradient";
  def.figure =
      "half the bytes on the wire; half the memory for gradients (`scripts/bench.sh "
      "strategy_costs`)";
}

}  // namespace fleet
