// clip: y = min(max(x, min), max).
#include "graph/program.h"
#include "ops/element_formula.h"

namespace fleet {

FLEET_OP(clip) {
  def.help = "min(max(x, min), max)";
  def.inputs = {{"x"}};
  def.outputs = {{"y"}};
  def.attributes = {{"min", 0.0}, {"max", 0.0}};
  def.inplace = {{0, 0}};
  def.add_trait<Elementwise>().formula = [](ElementwiseContext& context) {
    const Attributes& attributes = context.attributes();
    context.output(
        0, context.clamp(context.input(0), attributes.number("min"), attributes.number("max")));
  };
  def.infer = [](ShapeContext& context) { context.set_like(0, 0); };
  def.gradient = [](GradientContext& context) {
    context.append(
        "clip_grad", {context.input(0), context.output_gradient(0)}, {context.input_gradient(0)},
        {{"min", context.attributes().number("min")}, {"max", context.attributes().number("max")}});
  };
}

// dx = min <= x <= max ? dy : 0
FLEET_OP(clip_grad) {
  def.inputs = {{"x"}, {"dy"}};
  def.outputs = {{"dx"}};
  def.attributes = {{"min", 0.0}, {"max", 0.0}};
  def.inplace = {{1, 0}};
  def.add_trait<Elementwise>().formula = [](ElementwiseContext& context) {
    const Attributes& attributes = context.attributes();
    context.output(0, context.where_within(context.input(0), attributes.number("min"),
                                           attributes.number("max"), context.input(1)));
  };
  def.infer = [](ShapeContext& context) { context.set_like(0, 1); };
}

}  // namespace fleet
