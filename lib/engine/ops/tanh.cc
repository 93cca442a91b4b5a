// tanh: y = tanh(x).
#include "graph/elementwise.h"
#include "ops/activation.h"

namespace fleet {

FLEET_OP(tanh) {
  define_activation(&def, "tanh_grad");
  def.elementwise = [](ElementwiseContext& context) {
    context.output(0, context.tanh(context.input(0)));
  };
}

// dx = dy * (1 - y^2)
FLEET_OP(tanh_grad) {
  define_activation_gradient(&def);
  def.elementwise = [](ElementwiseContext& context) {
    const auto y = context.input(0);
    const auto slope = context.multiply_plus(context.scale(y, -1), y, 1);
    context.output(0, context.multiply(context.input(1), slope));
  };
}

}  // namespace fleet
