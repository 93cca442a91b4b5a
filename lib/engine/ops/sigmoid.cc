// sigmoid: y = 1 / (1 + exp(-x)).
#include "ops/activation.h"
#include "ops/element_formula.h"

namespace fleet {

FLEET_OP(sigmoid) {
  def.help = "1 / (1 + exp(-x))";
  define_activation(&def, "sigmoid_grad");
  def.add_trait<Elementwise>().formula = [](ElementwiseContext& context) {
    context.output(0, context.sigmoid(context.input(0)));
  };
}

// dx = dy * y * (1 - y)
FLEET_OP(sigmoid_grad) {
  define_activation_gradient(&def);
  def.add_trait<Elementwise>().formula = [](ElementwiseContext& context) {
    const auto y = context.input(0);
    const auto first = context.multiply(context.input(1), y);
    context.output(0, context.multiply(first, context.scale(y, -1, 1)));
  };
}

}  // namespace fleet
