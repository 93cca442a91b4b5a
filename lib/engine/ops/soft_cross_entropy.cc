// soft_cross_entropy: loss[sample] = -sum over classes of target * log(softmax(logits)), with a
// distribution as the target (timm's SoftTargetCrossEntropy); a share t counts as (1 -
// label_smoothing) t + label_smoothing / C. divergence: the entropy of the target
// is subtracted, which makes it the Kullback-Leibler divergence of softmax(logits) from the target;
// the gradient is the same. logits [N, C], target float32 [N, C]; loss [N].
#include "graph/program.h"
#include "ops/mixed_precision.h"

namespace fleet {

FLEET_OP(soft_cross_entropy) {
  def.help =
      "the loss of softmax(logits) for targets that are distributions, one per sample; divergence: "
      "without the targets' own entropy";
  def.inputs = {{"logits"}, {"target"}};
  def.outputs = {{"loss"}};
  def.attributes = {{"divergence", false}, {"label_smoothing", 0.0}};
  def.infer = [](ShapeContext& context) {
    const Shape& logits = context.shape(0);
    context.require(logits.rank() == 2, "logits " + logits.text() + " are not [samples, classes]");
    context.require(logits == context.shape(1),
                    "targets " + context.shape(1).text() + " do not fit logits " + logits.text());
    context.require(context.dtype(1) == DType::kFloat32, "targets are float32");
    const double smoothing = context.attributes().number("label_smoothing");
    context.require(smoothing >= 0 && smoothing <= 1, "label_smoothing is not within 0..1");
    context.set(0, {logits[0]}, context.dtype(0));
  };
  def.gradient = [](GradientContext& context) {
    context.require(!context.needs(1), "the targets are not differentiable");
    context.append("soft_cross_entropy_grad",
                   {context.input(0), context.input(1), context.output_gradient(0)},
                   {context.input_gradient(0)},
                   {{"label_smoothing", context.attributes().number("label_smoothing")}});
  };
  def.add_trait<MixedPrecision>().stays_float32 = true;
}

// dlogits = dloss (softmax(logits) * sum of target - target)
FLEET_OP(soft_cross_entropy_grad) {
  def.inputs = {{"logits"}, {"target"}, {"dloss"}};
  def.outputs = {{"dlogits"}};
  def.attributes = {{"label_smoothing", 0.0}};
  def.inplace = {{0, 0}};
  def.infer = [](ShapeContext& context) { context.set_like(0, 0); };
}

}  // namespace fleet
