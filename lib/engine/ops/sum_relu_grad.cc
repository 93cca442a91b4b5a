// sum_relu_grad: dx = y > 0 or NaN ? dy0 + dy1 + ... : 0, which is relu_grad of the sum of the
// contributions of y's readers, in one pass over memory. Inserted by the pass fuse_gradient_sums.
#include "graph/program.h"
#include "ops/element_formula.h"
#include "ops/mixed_precision.h"

namespace fleet {

FLEET_OP(sum_relu_grad) {
  def.inputs = {{"y"}, {"dy", Slot::kVariadic}};
  def.outputs = {{"dx"}};
  def.add_trait<MixedPrecision>().precision = Precision::kGray;
  def.inplace = {{1, 0}};
  def.add_trait<Elementwise>().formula = [](ElementwiseContext& context) {
    auto sum = context.input(1);
    for (int i = 2; i < context.input_count(); ++i) sum = context.add(sum, context.input(i));
    context.output(0, context.where_above(context.input(0), 0, sum));
  };
  def.infer = [](ShapeContext& context) {
    for (int i = 1; i < context.input_count(); ++i) {
      context.require(context.shape(i) == context.shape(0),
                      "gradients " + context.shape(i).text() + " of y " + context.shape(0).text());
    }
    context.set_like(0, 1);
  };
}

}  // namespace fleet
