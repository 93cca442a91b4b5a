// flatten: merges the dimensions from `start_axis` on: [N, C, H, W] -> [N, C*H*W].
#include "graph/op.h"
#include "graph/program.h"
#include "ops/mixed_precision.h"

namespace fleet {

FLEET_OP(flatten) {
  def.help = "x with the dimensions from start_axis on as one";
  def.inputs = {{"x"}};
  def.outputs = {{"y"}};
  def.attributes = {{"start_axis", int64_t{1}}};
  def.add_trait<MixedPrecision>().precision = Precision::kGray;
  def.inplace = {{0, 0}};
  def.infer = [](ShapeContext& context) {
    const Shape& x = context.shape(0);
    const int64_t start = context.attributes().integer("start_axis");
    context.require(start >= 0 && start < x.rank(),
                    "no axis " + std::to_string(start) + " in " + x.text());
    Shape shape(x.dims().first(start + 1));
    shape[static_cast<int>(start)] = Shape(x.dims().subspan(start)).elements();
    context.set(0, shape, context.dtype(0));
  };
  def.gradient = [](GradientContext& context) {
    context.append("reshape", {context.output_gradient(0)}, {context.input_gradient(0)},
                   {{"shape", to_attribute(context.input_var(0).shape)}});
  };
}

}  // namespace fleet
