// sigmoid: y = 1 / (1 + exp(-x)).
#include "graph/elementwise.h"
#include "ops/activation.h"

namespace fleet {

FLEET_OP(sigmoid) {
  define_activation(&def, "sigmoid_grad");
  def.elementwise = [](ElementwiseContext& context) {
    context.output(0, context.sigmoid(context.input(0)));
  };
}

// dx = dy * y * (1 - y)
FLEET_OP(sigmoid_grad) {
  define_activation_gradient(&def);
  def.elementwise = [](ElementwiseContext& context) {
    const auto y = context.input(0);
    const auto first = context.multiply(context.input(1), y);
    context.output(0, context.multiply(first, context.scale(y, -1, 1)));
  };
}

}  // namespace fleet
