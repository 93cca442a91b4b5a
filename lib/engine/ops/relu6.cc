// relu6: y = min(max(x, 0), 6); NaN stays NaN, as in PyTorch.
#include "ops/activation.h"
#include "ops/element_formula.h"

namespace fleet {

FLEET_OP(relu6) {
  def.help = "min(max(x, 0), 6)";
  define_activation(&def, "relu6_grad");
  def.add_trait<Elementwise>().formula = [](ElementwiseContext& context) {
    context.output(0, context.clamp(context.input(0), 0, 6));
  };
}

// dx = 0 < y < 6 or NaN ? dy : 0
FLEET_OP(relu6_grad) {
  define_activation_gradient(&def);
  def.add_trait<Elementwise>().formula = [](ElementwiseContext& context) {
    const auto y = context.input(0);
    context.output(0, context.where_above(y, 0, context.where_below(y, 6, context.input(1))));
  };
}

}  // namespace fleet
