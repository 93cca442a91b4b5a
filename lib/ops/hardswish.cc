// hardswish: y = x * min(max(x + 3, 0), 6) / 6 (Howard et al., 2019).
#include "graph/elementwise.h"
#include "graph/program.h"

namespace fleet {

FLEET_OP(hardswish) {
  def.inputs = {{"x"}};
  def.outputs = {{"y"}};
  def.precision = Precision::kGray;
  def.is_activation = true;
  def.inplace = {{0, 0}};
  def.elementwise = [](ElementwiseContext& context) {
    const auto x = context.input(0);
    const auto bounded = context.clamp(context.scale(x, 1, 3), 0, 6);
    context.output(0, context.scale(context.multiply(x, bounded), 1.0 / 6));
  };
  def.infer = [](ShapeContext& context) { context.set_like(0, 0); };
  def.gradient = [](GradientContext& context) {
    context.append("hardswish_grad", {context.input(0), context.output_gradient(0)},
                   {context.input_gradient(0)});
  };
}

// dx = x <= -3 ? 0 : x < 3 ? dy * (x / 3 + 1 / 2) : dy, as PyTorch's
FLEET_OP(hardswish_grad) {
  def.inputs = {{"x"}, {"dy"}};
  def.outputs = {{"dx"}};
  def.precision = Precision::kGray;
  def.inplace = {{1, 0}};
  def.infer = [](ShapeContext& context) { context.set_like(0, 1); };
}

}  // namespace fleet
