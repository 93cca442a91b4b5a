// dot_interaction: the dot products of all pairs of a sample's features (DLRM, Naumov et al. 2019):
//   y[n, i (i - 1) / 2 + j] = <x[n, i], x[n, j]> for i = 1 to F - 1 and j = 0 to i - 1
// x [N, F, D]; y [N, F (F - 1) / 2]: the rows below the diagonal of x x^T one after another, as
// DLRM's "dot" without the diagonal has them.
#include "graph/program.h"
#include "ops/arithmetic.h"
#include "ops/mixed_precision.h"

namespace fleet {
namespace {

double operations(const Program& program, const Op& op) {
  const Shape& x = shape_of(program, op.inputs[0]);
  return static_cast<double>(x.elements()) * static_cast<double>(x[1] - 1);
}

}  // namespace

FLEET_OP(dot_interaction) {
  def.help =
      "the dot products of all pairs of a sample's rows: x [N, F, D], y [N, F (F - 1) / 2], in the "
      "order of the rows below a diagonal";
  def.inputs = {{"x"}};
  def.outputs = {{"y"}};
  def.add_trait<Arithmetic>().operations = operations;
  def.infer = [](ShapeContext& context) {
    const Shape& x = context.shape(0);
    context.require(x.rank() == 3 && x[1] >= 2,
                    "x " + x.text() + " is not [samples, features, values] of 2 or more features");
    context.set(0, {x[0], x[1] * (x[1] - 1) / 2}, context.dtype(0));
  };
  def.gradient = [](GradientContext& context) {
    context.append("dot_interaction_grad", {context.input(0), context.output_gradient(0)},
                   {context.input_gradient(0)});
  };
}

// dx[n, i, :] = sum over j != i of dy[n, pair of i and j] x[n, j, :]
FLEET_OP(dot_interaction_grad) {
  def.inputs = {{"x"}, {"dy"}};
  def.outputs = {{"dx"}};
  def.infer = [](ShapeContext& context) { context.set_like(0, 0); };
}

}  // namespace fleet
