#include "strategy/meta/narrow_gradients.h"

namespace fleet {

FLEET_META_OPTIMIZER(fp16_allreduce) {
  def.help = "gradients travel in float16";
  narrow_gradients(def, "fp16_allreduce", DType::kFloat16);
  def.paddle_class = "FP16AllReduceOptimizer";
  def.cost =
      "sums have float16's 11 bits, and what is above 65504 becomes infinite; two casts a "
      "gradient";
  def.figure =
      "half the bytes on the wire; memory for gradients is halved too (`scripts/bench.sh "
      "strategy_costs`)";
}

}  // namespace fleet
