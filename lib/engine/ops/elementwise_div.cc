// elementwise_div: out = x / y, with y broadcast over x along `axis` (ops/broadcast.h). The divisor
// is not differentiable: it is a number that is fed, such as the weighted tokens of a batch.
#include "graph/program.h"
#include "ops/broadcast.h"

namespace fleet {

FLEET_OP(elementwise_div) {
  def.help =
      "x / y, with y broadcast over x from axis on (-1: over its last dimensions); y is not "
      "differentiable";
  define_broadcasting(def);
  def.gradient = [](GradientContext& context) {
    context.require(!context.needs(1), "the divisor is not differentiable");
    context.append("elementwise_div", {context.output_gradient(0), context.input(1)},
                   {context.input_gradient(0)}, {{"axis", context.attributes().integer("axis")}});
  };
}

}  // namespace fleet
