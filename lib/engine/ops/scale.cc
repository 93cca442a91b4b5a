// scale: y = x * scale + bias.
#include "graph/program.h"
#include "ops/element_formula.h"
#include "ops/mixed_precision.h"

namespace fleet {

FLEET_OP(scale) {
  def.help = "x scale + bias";
  def.inputs = {{"x"}};
  def.outputs = {{"y"}};
  def.attributes = {{"scale", 1.0}, {"bias", 0.0}};
  def.add_trait<MixedPrecision>().precision = Precision::kGray;
  def.inplace = {{0, 0}};
  def.add_trait<Elementwise>().formula = [](ElementwiseContext& context) {
    const Attributes& attributes = context.attributes();
    context.output(
        0, context.scale(context.input(0), attributes.number("scale"), attributes.number("bias")));
  };
  def.infer = [](ShapeContext& context) { context.set_like(0, 0); };
  def.gradient = [](GradientContext& context) {
    context.append("scale", {context.output_gradient(0)}, {context.input_gradient(0)},
                   {{"scale", context.attributes().number("scale")}});
  };
}

}  // namespace fleet
