// silu, also called swish: y = x / (1 + exp(-x)) (Elfwing et al., 2017).
#include "ops/activation.h"
#include "ops/element_formula.h"

namespace fleet {

FLEET_OP(silu) {
  def.help = "x / (1 + exp(-x))";
  define_activation(&def, "silu_grad", GradientFrom::kInput);
  def.add_trait<Elementwise>().formula = [](ElementwiseContext& context) {
    const auto x = context.input(0);
    context.output(0, context.multiply(x, context.sigmoid(x)));
  };
}

// With s = 1 / (1 + exp(-x)): dx = dy * s * (1 + x * (1 - s))
FLEET_OP(silu_grad) {
  define_activation_gradient(&def, GradientFrom::kInput);
  def.add_trait<Elementwise>().formula = [](ElementwiseContext& context) {
    const auto x = context.input(0), s = context.sigmoid(x);
    const auto slope = context.multiply_plus(x, context.scale(s, -1, 1), 1);
    context.output(0, context.multiply(context.multiply(context.input(1), s), slope));
  };
}

}  // namespace fleet
