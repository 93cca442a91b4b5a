// softmax_with_cross_entropy: loss[sample] = -sum over classes of target * log(softmax(logits)),
// with target = (1 - label_smoothing) * onehot(label) + label_smoothing / classes. Samples labelled
// `ignore_index` have loss 0. The gradient is computed from the logits, so the softmax need not be
// stored: request that output only to read it (it is not differentiable). A label outside the
// classes is an error on the CPU. A GPU cannot stop there: the sample's loss is NaN and its
// gradient 0.
#include "ops/label_shape.h"

namespace fleet {

FLEET_OP(softmax_with_cross_entropy) {
  def.inputs = {{"logits"}, {"label"}};
  def.outputs = {{"loss"}, {"softmax", Slot::kOptional}};
  def.attributes = {{"label_smoothing", 0.0}, {"ignore_index", int64_t{-100}}};
  def.infer = [](ShapeContext& context) {
    const double smoothing = context.attributes().number("label_smoothing");
    context.require(smoothing >= 0 && smoothing <= 1, "label_smoothing is not within 0..1");
    context.set(0, samples_shape(context, 0, 1), context.dtype(0));
    context.set_like(1, 0);
  };
  def.gradient = [](GradientContext& context) {
    FLEET_CHECK(context.output_gradient(1) == kNoVar,
                "the softmax of softmax_with_cross_entropy is not differentiable: use softmax");
    context.append("softmax_with_cross_entropy_grad",
                   {context.input(0), context.input(1), context.output_gradient(0)},
                   {context.input_gradient(0)},
                   {{"label_smoothing", context.attributes().number("label_smoothing")},
                    {"ignore_index", context.attributes().integer("ignore_index")}});
  };
}

// dlogits = (softmax(logits) - target) * dloss
FLEET_OP(softmax_with_cross_entropy_grad) {
  def.inputs = {{"logits"}, {"label"}, {"dloss"}};
  def.outputs = {{"dlogits"}};
  def.attributes = {{"label_smoothing", 0.0}, {"ignore_index", int64_t{-100}}};
  def.inplace = {{0, 0}};
  def.infer = [](ShapeContext& context) { context.set_like(0, 0); };
}

}  // namespace fleet
