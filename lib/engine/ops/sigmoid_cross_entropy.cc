// sigmoid_cross_entropy: binary cross entropy of each logit with its target, the mean over the
// classes of a sample (PyTorch's binary_cross_entropy_with_logits, formula
// max(x, 0) - x t + log(1 + exp(-|x|))). logits [N, C], target float32 [N, C] in [0, 1]; loss [N].
#include "graph/program.h"
#include "ops/mixed_precision.h"

namespace fleet {

FLEET_OP(sigmoid_cross_entropy) {
  def.help =
      "binary cross entropy of logits [N, C] with targets in [0, 1], the mean over the classes of "
      "a "
      "sample";
  def.inputs = {{"logits"}, {"target"}};
  def.outputs = {{"loss"}};
  def.infer = [](ShapeContext& context) {
    const Shape& logits = context.shape(0);
    context.require(logits.rank() == 2, "logits " + logits.text() + " are not [samples, classes]");
    context.require(logits == context.shape(1),
                    "targets " + context.shape(1).text() + " do not fit logits " + logits.text());
    context.require(context.dtype(1) == DType::kFloat32, "targets are float32");
    context.set(0, {logits[0]}, context.dtype(0));
  };
  def.gradient = [](GradientContext& context) {
    context.require(!context.needs(1), "the targets are not differentiable");
    context.append("sigmoid_cross_entropy_grad",
                   {context.input(0), context.input(1), context.output_gradient(0)},
                   {context.input_gradient(0)});
  };
  def.add_trait<MixedPrecision>().stays_float32 = true;
}

// dlogits = dloss (sigmoid(logits) - target) / C
FLEET_OP(sigmoid_cross_entropy_grad) {
  def.inputs = {{"logits"}, {"target"}, {"dloss"}};
  def.outputs = {{"dlogits"}};
  def.inplace = {{0, 0}};
  def.infer = [](ShapeContext& context) { context.set_like(0, 0); };
}

}  // namespace fleet
