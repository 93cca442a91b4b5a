// relu6: y = min(max(x, 0), 6). Its gradient is taken from the output, so the input need not live.
#include "graph/program.h"

namespace fleet {

FLEET_OP(relu6) {
  def.inputs = {{"x"}};
  def.outputs = {{"y"}};
  def.precision = Precision::kGray;
  def.is_activation = true;
  def.inplace = {{0, 0}};
  def.infer = [](ShapeContext& context) { context.set_like(0, 0); };
  def.gradient = [](GradientContext& context) {
    context.append("relu6_grad", {context.output(0), context.output_gradient(0)},
                   {context.input_gradient(0)});
  };
}

// dx = 0 < y < 6 ? dy : 0
FLEET_OP(relu6_grad) {
  def.inputs = {{"y"}, {"dy"}};
  def.outputs = {{"dx"}};
  def.precision = Precision::kGray;
  def.inplace = {{1, 0}};
  def.infer = [](ShapeContext& context) { context.set_like(0, 1); };
}

}  // namespace fleet
