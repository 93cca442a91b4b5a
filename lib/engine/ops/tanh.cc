// tanh: y = tanh(x).
#include "ops/activation.h"
#include "ops/element_formula.h"

namespace fleet {

FLEET_OP(tanh) {
  def.help = "tanh(x)";
  define_activation(&def, "tanh_grad");
  def.add_trait<Elementwise>().formula = [](ElementwiseContext& context) {
    context.output(0, context.tanh(context.input(0)));
  };
}

// dx = dy * (1 - y^2)
FLEET_OP(tanh_grad) {
  define_activation_gradient(&def);
  def.add_trait<Elementwise>().formula = [](ElementwiseContext& context) {
    const auto y = context.input(0);
    const auto slope = context.multiply_plus(context.scale(y, -1), y, 1);
    context.output(0, context.multiply(context.input(1), slope));
  };
}

}  // namespace fleet
