// sum: out = x0 + x1 + ..., all of one shape. Adds the contributions of several readers of a
// variable to its gradient; with one input it is a copy.
#include "graph/program.h"
#include "ops/element_formula.h"

namespace fleet {

FLEET_OP(sum) {
  def.help = "the sum of all inputs, which have one shape";
  def.inputs = {{"x", Slot::kVariadic}};
  def.outputs = {{"out"}};
  def.inplace = {{0, 0}};
  def.add_trait<Elementwise>().formula = [](ElementwiseContext& context) {
    auto sum = context.input(0);
    for (int i = 1; i < context.input_count(); ++i) sum = context.add(sum, context.input(i));
    context.output(0, sum);
  };
  def.infer = [](ShapeContext& context) {
    for (int i = 1; i < context.input_count(); ++i) {
      context.require(context.shape(i) == context.shape(0),
                      "cannot add " + context.shape(i).text() + " to " + context.shape(0).text());
    }
    context.set_like(0, 0);
  };
  def.gradient = [](GradientContext& context) {
    for (int i = 0; i < context.input_count(); ++i) {
      context.pass_gradient(i, context.output_gradient(0));
    }
  };
}

}  // namespace fleet
