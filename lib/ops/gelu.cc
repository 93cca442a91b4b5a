// gelu: y = x * P(X <= x) of a standard normal X (Hendrycks and Gimpel, 2016), by the error
// function, or with `approximate` by its tanh form
// y = x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3))).
#include "graph/program.h"

namespace fleet {

FLEET_OP(gelu) {
  def.inputs = {{"x"}};
  def.outputs = {{"y"}};
  def.attributes = {{"approximate", false}};
  def.is_activation = true;
  def.inplace = {{0, 0}};
  def.infer = [](ShapeContext& context) { context.set_like(0, 0); };
  def.gradient = [](GradientContext& context) {
    context.append("gelu_grad", {context.input(0), context.output_gradient(0)},
                   {context.input_gradient(0)},
                   {{"approximate", context.attributes().boolean("approximate")}});
  };
}

FLEET_OP(gelu_grad) {
  def.inputs = {{"x"}, {"dy"}};
  def.outputs = {{"dx"}};
  def.attributes = {{"approximate", false}};
  def.inplace = {{1, 0}};
  def.infer = [](ShapeContext& context) { context.set_like(0, 1); };
}

}  // namespace fleet
