// hardsigmoid: y = min(max(x + 3, 0), 6) / 6 (Howard et al., 2019); NaN stays NaN.
#include "ops/activation.h"
#include "ops/element_formula.h"

namespace fleet {

FLEET_OP(hardsigmoid) {
  def.help = "min(max(x + 3, 0), 6) / 6";
  define_activation(&def, "hardsigmoid_grad");
  def.add_trait<Elementwise>().formula = [](ElementwiseContext& context) {
    const auto bounded = context.clamp(context.scale(context.input(0), 1, 3), 0, 6);
    context.output(0, context.scale(bounded, 1.0 / 6));
  };
}

// dx = 0 < y < 1 or NaN ? dy / 6 : 0
FLEET_OP(hardsigmoid_grad) {
  define_activation_gradient(&def);
  def.add_trait<Elementwise>().formula = [](ElementwiseContext& context) {
    const auto y = context.input(0), slope = context.scale(context.input(1), 1.0 / 6);
    context.output(0, context.where_above(y, 0, context.where_below(y, 1, slope)));
  };
}

}  // namespace fleet
