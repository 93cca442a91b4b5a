// cast: y = x in the element type `to`. To integers it truncates toward zero.
#include "graph/elementwise.h"
#include "graph/program.h"
#include "ops/dtype_attribute.h"

namespace fleet {

FLEET_OP(cast) {
  def.inputs = {{"x"}};
  def.outputs = {{"y"}};
  def.attributes = {{"to", std::string("float32")}};
  def.precision = Precision::kGray;
  def.elementwise = [](ElementwiseContext& context) { context.output(0, context.input(0)); };
  def.infer = [](ShapeContext& context) {
    context.set(0, context.shape(0), to_dtype(context.attributes().text("to")));
  };
  def.gradient = [](GradientContext& context) {
    const DType from = context.input_var(0).dtype;
    if (!is_floating(from) || !context.needs(0)) return;
    context.append("cast", {context.output_gradient(0)}, {context.input_gradient(0)},
                   {{"to", std::string(name_of(from))}});
  };
}

}  // namespace fleet
