// cast: y = x in the element type `to`. To integers it truncates toward zero.
#include "graph/op.h"
#include "graph/program.h"
#include "ops/element_formula.h"
#include "ops/mixed_precision.h"

namespace fleet {

FLEET_OP(cast) {
  def.help =
      "x in the element type `to`: float32, float64, float16, bfloat16, int64, int32 or uint8";
  def.inputs = {{"x"}};
  def.outputs = {{"y"}};
  def.attributes = {{"to", std::string("float32")}};
  def.add_trait<MixedPrecision>().precision = Precision::kGray;
  def.add_trait<MixedPrecision>().on_custom_lists = false;
  def.add_trait<Elementwise>().formula = [](ElementwiseContext& context) {
    context.output(0, context.input(0));
  };
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
