// mean: the mean of all elements, of shape [1].
#include "graph/op.h"
#include "graph/program.h"

namespace fleet {

FLEET_OP(mean) {
  def.help = "the mean of all elements, of shape [1]";
  def.inputs = {{"x"}};
  def.outputs = {{"mean"}};
  def.infer = [](ShapeContext& context) { context.set(0, {1}, context.dtype(0)); };
  def.gradient = [](GradientContext& context) {
    context.append("mean_grad", {context.output_gradient(0)}, {context.input_gradient(0)},
                   {{"shape", to_attribute(context.input_var(0).shape)}});
  };
}

// dx = dmean / elements, everywhere
FLEET_OP(mean_grad) {
  def.inputs = {{"dmean"}};
  def.outputs = {{"dx"}};
  def.attributes = {{"shape", std::vector<int64_t>()}};
  def.infer = [](ShapeContext& context) {
    context.set(0, to_shape(context.attributes().integers("shape")), context.dtype(0));
  };
}

}  // namespace fleet
