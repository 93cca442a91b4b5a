// relu: y = max(x, 0); NaN stays NaN, as in PyTorch.
#include "ops/activation.h"
#include "ops/element_formula.h"

namespace fleet {

FLEET_OP(relu) {
  def.help = "max(x, 0)";
  define_activation(&def, "relu_grad");
  def.add_trait<Elementwise>().formula = [](ElementwiseContext& context) {
    const auto x = context.input(0);
    context.output(0, context.where_above(x, 0, x));
  };
}

// dx = y > 0 or NaN ? dy : 0
FLEET_OP(relu_grad) {
  define_activation_gradient(&def);
  def.add_trait<Elementwise>().formula = [](ElementwiseContext& context) {
    context.output(0, context.where_above(context.input(0), 0, context.input(1)));
  };
}

}  // namespace fleet
