// elementwise_sub: out = x - y, with y broadcast over x along `axis` (ops/broadcast.h).
#include "graph/op.h"
#include "graph/program.h"
#include "ops/broadcast.h"
#include "ops/element_formula.h"
#include "ops/mixed_precision.h"

namespace fleet {

FLEET_OP(elementwise_sub) {
  def.help = "x - y, with y broadcast over x from axis on (-1: over its last dimensions)";
  define_broadcasting(def);
  def.add_trait<Elementwise>().formula = [](ElementwiseContext& context) {
    const int64_t axis = context.attributes().integer("axis");
    context.output(0, context.subtract(context.input(0), context.input(1, axis)));
  };
  def.gradient = [](GradientContext& context) {
    context.pass_gradient(0, context.output_gradient(0));
    if (!context.needs(1)) return;
    context.append("elementwise_sub_grad", {context.output_gradient(0)},
                   {context.input_gradient(1)},
                   {{"axis", context.attributes().integer("axis")},
                    {"y_shape", to_attribute(context.input_var(1).shape)}});
  };
}

// dy = -dout, summed over the dimensions that y is broadcast over. (dx equals dout.)
FLEET_OP(elementwise_sub_grad) {
  def.inputs = {{"dout"}};
  def.outputs = {{"dy"}};
  def.attributes = {{"axis", int64_t{-1}}, {"y_shape", std::vector<int64_t>()}};
  def.add_trait<MixedPrecision>().precision = Precision::kGray;
  def.inplace = {{0, 0}};
  def.add_trait<Elementwise>().formula = [](ElementwiseContext& context) {
    const Shape y = to_shape(context.attributes().integers("y_shape"));
    if (y == context.shape(0)) context.output(0, context.scale(context.input(0), -1));
  };
  def.infer = [](ShapeContext& context) {
    context.set(0, to_shape(context.attributes().integers("y_shape")), context.dtype(0));
  };
}

}  // namespace fleet
