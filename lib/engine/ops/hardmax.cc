// hardmax: 1 for the largest element of each row and 0 for the others; of equal ones the first (the
// operation of ONNX, over the last axis). Nothing is differentiable.
#include "graph/program.h"
#include "ops/mixed_precision.h"

namespace fleet {

FLEET_OP(hardmax) {
  def.help = "1 for the first largest element over the last dimension, and 0 for the others";
  def.inputs = {{"x"}};
  def.outputs = {{"y"}};
  def.infer = [](ShapeContext& context) {
    context.require(context.shape(0).rank() >= 1, "x is a scalar");
    context.set_like(0, 0);
  };
  def.add_trait<MixedPrecision>().stays_float32 = true;
}

}  // namespace fleet
