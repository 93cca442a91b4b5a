// silu, also called swish: y = x / (1 + exp(-x)) (Elfwing et al., 2017).
#include "graph/elementwise.h"
#include "graph/program.h"

namespace fleet {

FLEET_OP(silu) {
  def.inputs = {{"x"}};
  def.outputs = {{"y"}};
  def.precision = Precision::kGray;
  def.is_activation = true;
  def.inplace = {{0, 0}};
  def.elementwise = [](ElementwiseContext& context) {
    const auto x = context.input(0);
    context.output(0, context.multiply(x, context.sigmoid(x)));
  };
  def.infer = [](ShapeContext& context) { context.set_like(0, 0); };
  def.gradient = [](GradientContext& context) {
    context.append("silu_grad", {context.input(0), context.output_gradient(0)},
                   {context.input_gradient(0)});
  };
}

// With s = 1 / (1 + exp(-x)): dx = dy * s * (1 + x * (1 - s))
FLEET_OP(silu_grad) {
  def.inputs = {{"x"}, {"dy"}};
  def.outputs = {{"dx"}};
  def.precision = Precision::kGray;
  def.inplace = {{1, 0}};
  def.elementwise = [](ElementwiseContext& context) {
    const auto x = context.input(0), s = context.sigmoid(x);
    const auto slope = context.multiply_plus(x, context.scale(s, -1, 1), 1);
    context.output(0, context.multiply(context.multiply(context.input(1), s), slope));
  };
  def.infer = [](ShapeContext& context) { context.set_like(0, 1); };
}

}  // namespace fleet
