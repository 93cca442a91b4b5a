// sigmoid: y = 1 / (1 + exp(-x)). Its gradient is taken from the output, so the input need not
// live.
#include "graph/program.h"

namespace fleet {

FLEET_OP(sigmoid) {
  def.inputs = {{"x"}};
  def.outputs = {{"y"}};
  def.precision = Precision::kGray;
  def.is_activation = true;
  def.inplace = {{0, 0}};
  def.infer = [](ShapeContext& context) { context.set_like(0, 0); };
  def.gradient = [](GradientContext& context) {
    context.append("sigmoid_grad", {context.output(0), context.output_gradient(0)},
                   {context.input_gradient(0)});
  };
}

// dx = dy * y * (1 - y)
FLEET_OP(sigmoid_grad) {
  def.inputs = {{"y"}, {"dy"}};
  def.outputs = {{"dx"}};
  def.precision = Precision::kGray;
  def.inplace = {{1, 0}};
  def.infer = [](ShapeContext& context) { context.set_like(0, 1); };
}

}  // namespace fleet
