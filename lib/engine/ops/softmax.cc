// softmax: y = exp(x) / sum(exp(x)) along `axis`.
#include "graph/program.h"

namespace fleet {

FLEET_OP(softmax) {
  def.help = "exp(x) / sum(exp(x)) along axis; negative ones count from the end";
  def.inputs = {{"x"}};
  def.outputs = {{"y"}};
  def.attributes = {{"axis", int64_t{-1}}};
  def.inplace = {{0, 0}};
  def.infer = [](ShapeContext& context) {
    const int64_t axis = context.attributes().integer("axis"), rank = context.shape(0).rank();
    context.require(axis >= -rank && axis < rank,
                    "no axis " + std::to_string(axis) + " in " + context.shape(0).text());
    context.set_like(0, 0);
  };
  def.gradient = [](GradientContext& context) {
    context.append("softmax_grad", {context.output(0), context.output_gradient(0)},
                   {context.input_gradient(0)}, {{"axis", context.attributes().integer("axis")}});
  };
}

// dx = y * (dy - sum(y * dy along axis))
FLEET_OP(softmax_grad) {
  def.inputs = {{"y"}, {"dy"}};
  def.outputs = {{"dx"}};
  def.attributes = {{"axis", int64_t{-1}}};
  def.inplace = {{1, 0}};
  def.infer = [](ShapeContext& context) { context.set_like(0, 1); };
}

}  // namespace fleet
