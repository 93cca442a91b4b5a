// fm_interaction: the second-order term of a factorization machine (Rendle 2010, equation 5), the
// sum of the dot products of all pairs of a sample's features:
//   y[n] = sum over i < j of <x[n, i], x[n, j]>
//        = 1/2 sum over d of ((sum over f of x[n, f, d])^2 - sum over f of x[n, f, d]^2)
// x [N, F, D]; y [N, 1].
#include "graph/program.h"
#include "ops/mixed_precision.h"

namespace fleet {

FLEET_OP(fm_interaction) {
  def.help = "the sum of the dot products of all pairs of a sample's rows: x [N, F, D], y [N, 1]";
  def.inputs = {{"x"}};
  def.outputs = {{"y"}};
  def.infer = [](ShapeContext& context) {
    const Shape& x = context.shape(0);
    context.require(x.rank() == 3, "x " + x.text() + " is not [samples, features, values]");
    context.set(0, {x[0], 1}, context.dtype(0));
  };
  def.gradient = [](GradientContext& context) {
    context.append("fm_interaction_grad", {context.input(0), context.output_gradient(0)},
                   {context.input_gradient(0)});
  };
}

// dx[n, f, d] = dy[n] (sum over the other features of x[n, :, d])
FLEET_OP(fm_interaction_grad) {
  def.inputs = {{"x"}, {"dy"}};
  def.outputs = {{"dx"}};
  def.infer = [](ShapeContext& context) { context.set_like(0, 0); };
}

}  // namespace fleet
