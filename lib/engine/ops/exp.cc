// exp: y = e^x.
#include "graph/program.h"

namespace fleet {

FLEET_OP(exp) {
  def.help = "e^x";
  def.inputs = {{"x"}};
  def.outputs = {{"y"}};
  def.inplace = {{0, 0}};
  def.infer = [](ShapeContext& context) { context.set_like(0, 0); };
  def.gradient = [](GradientContext& context) {
    context.append("exp_grad", {context.output(0), context.output_gradient(0)},
                   {context.input_gradient(0)});
  };
}

// dx = dy y
FLEET_OP(exp_grad) {
  def.inputs = {{"y"}, {"dy"}};
  def.outputs = {{"dx"}};
  def.inplace = {{1, 0}};
  def.infer = [](ShapeContext& context) { context.set_like(0, 1); };
}

}  // namespace fleet
