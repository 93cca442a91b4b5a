// sum_partials: the sum of the elements of a float64 tensor in order, rounded to float32 [1].
#include "graph/program.h"
#include "ops/mixed_precision.h"

namespace fleet {

FLEET_OP(sum_partials) {
  def.inputs = {{"parts"}};
  def.outputs = {{"sum"}};
  def.add_trait<MixedPrecision>().on_custom_lists = false;
  def.infer = [](ShapeContext& context) {
    context.require(context.dtype(0) == DType::kFloat64, "the parts are not float64");
    context.set(0, {1}, DType::kFloat32);
  };
}

}  // namespace fleet
