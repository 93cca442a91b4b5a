// weighted_sum: sums = [sum of weight * value, sum of weight]. The quotient is a metric's mean over
// samples, ranks and batches. Samples of weight 0 do not count, whatever their value.
#include "graph/program.h"

namespace fleet {

FLEET_OP(weighted_sum) {
  def.inputs = {{"value"}, {"weight"}};
  def.outputs = {{"sums"}};
  def.infer = [](ShapeContext& context) {
    context.require(
        context.shape(0).elements() == context.shape(1).elements(),
        "weights " + context.shape(1).text() + " do not fit " + context.shape(0).text());
    context.set(0, {2}, DType::kFloat32);
  };
}

}  // namespace fleet
