// hardswish: y = x * min(max(x + 3, 0), 6) / 6 (Howard et al., 2019).
#include "ops/activation.h"
#include "ops/element_formula.h"

namespace fleet {

FLEET_OP(hardswish) {
  def.help = "x min(max(x + 3, 0), 6) / 6";
  define_activation(&def, "hardswish_grad", GradientFrom::kInput);
  def.add_trait<Elementwise>().formula = [](ElementwiseContext& context) {
    const auto x = context.input(0);
    const auto bounded = context.clamp(context.scale(x, 1, 3), 0, 6);
    context.output(0, context.scale(context.multiply(x, bounded), 1.0 / 6));
  };
}

// dx = x <= -3 ? 0 : x < 3 ? dy * (x / 3 + 1 / 2) : dy, as PyTorch's
FLEET_OP(hardswish_grad) { define_activation_gradient(&def, GradientFrom::kInput); }

}  // namespace fleet
