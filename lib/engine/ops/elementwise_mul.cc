// elementwise_mul: out = x * y, with y broadcast over x along `axis` (ops/broadcast.h).
#include "graph/program.h"
#include "ops/broadcast.h"
#include "ops/element_formula.h"
#include "ops/mixed_precision.h"

namespace fleet {

FLEET_OP(elementwise_mul) {
  def.help =
      "x y, element by element, with y broadcast over x from axis on (-1: over its last "
      "dimensions)";
  define_broadcasting(def);
  def.add_trait<Elementwise>().formula = [](ElementwiseContext& context) {
    const int64_t axis = context.attributes().integer("axis");
    context.output(0, context.multiply(context.input(0), context.input(1, axis)));
  };
  def.gradient = [](GradientContext& context) {
    const VarId dx = context.input_gradient(0), dy = context.input_gradient(1);
    if (dx == kNoVar && dy == kNoVar) return;
    context.append("elementwise_mul_grad",
                   {context.input(0), context.input(1), context.output_gradient(0)}, {dx, dy},
                   {{"axis", context.attributes().integer("axis")}});
  };
}

// dx = dout * y, dy = dout * x, summed over the dimensions that y is broadcast over.
FLEET_OP(elementwise_mul_grad) {
  def.inputs = {{"x"}, {"y"}, {"dout"}};
  def.outputs = {{"dx", Slot::kOptional}, {"dy", Slot::kOptional}};
  def.attributes = {{"axis", int64_t{-1}}};
  def.add_trait<MixedPrecision>().precision = Precision::kGray;
  def.inplace = {{2, 0}};
  def.add_trait<Elementwise>().formula = [](ElementwiseContext& context) {
    // Not elementwise: it sums.
    if (context.shape(0) != context.shape(1) && context.has_output(1)) return;
    const int64_t axis = context.attributes().integer("axis");
    const auto slope = context.input(2);
    if (context.has_output(0)) {
      context.output(0, context.multiply(slope, context.input(1, axis)));
    }
    if (context.has_output(1)) context.output(1, context.multiply(slope, context.input(0)));
  };
  def.infer = [](ShapeContext& context) {
    context.set_like(0, 0);
    context.set_like(1, 1);
  };
}

}  // namespace fleet
