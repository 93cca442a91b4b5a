// weighted_cross_entropy: softmax_with_cross_entropy with a weight per class, as PyTorch's
// CrossEntropyLoss(weight=..., label_smoothing=..., reduction="none"): loss[sample] = -sum over
// classes of weight * target * log(softmax(logits)), with target = (1 - label_smoothing) *
// onehot(label) + label_smoothing / classes. The output `weight` is that of the label: a mean loss
// is the sum of losses divided by the sum of these weights. Samples labelled `ignore_index` have
// loss and weight 0. Labels outside the classes: as in softmax_with_cross_entropy.
#include "ops/label_shape.h"

namespace fleet {

static void check_weights(const ShapeContext& context) {
  const Shape& logits = context.shape(0);
  context.require(context.shape(2) == Shape{logits[logits.rank() - 1]},
                  "class weights " + context.shape(2).text() + " do not fit " + logits.text());
  context.require(context.dtype(2) == DType::kFloat32, "class weights are float32");
}

FLEET_OP(weighted_cross_entropy) {
  def.inputs = {{"logits"}, {"label"}, {"class_weights"}};
  def.outputs = {{"loss"}, {"weight"}};
  def.attributes = {{"label_smoothing", 0.0}, {"ignore_index", int64_t{-100}}};
  def.infer = [](ShapeContext& context) {
    const double smoothing = context.attributes().number("label_smoothing");
    context.require(smoothing >= 0 && smoothing <= 1, "label_smoothing is not within 0..1");
    const Shape samples = samples_shape(context, 0, 1);
    check_weights(context);
    context.set(0, samples, context.dtype(0));
    context.set(1, samples, DType::kFloat32);
  };
  def.gradient = [](GradientContext& context) {
    FLEET_CHECK(context.output_gradient(1) == kNoVar,
                "the weights of weighted_cross_entropy are not differentiable");
    context.append(
        "weighted_cross_entropy_grad",
        {context.input(0), context.input(1), context.input(2), context.output_gradient(0)},
        {context.input_gradient(0)},
        {{"label_smoothing", context.attributes().number("label_smoothing")},
         {"ignore_index", context.attributes().integer("ignore_index")}});
  };
}

// dlogits = (softmax(logits) * total - weight * target) * dloss, where total = the sum over classes
// of weight * target.
FLEET_OP(weighted_cross_entropy_grad) {
  def.inputs = {{"logits"}, {"label"}, {"class_weights"}, {"dloss"}};
  def.outputs = {{"dlogits"}};
  def.attributes = {{"label_smoothing", 0.0}, {"ignore_index", int64_t{-100}}};
  def.inplace = {{0, 0}};
  def.infer = [](ShapeContext& context) { context.set_like(0, 0); };
}

}  // namespace fleet
