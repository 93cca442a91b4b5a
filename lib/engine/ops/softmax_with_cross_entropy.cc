// softmax_with_cross_entropy: loss[sample] = -sum over classes of target * log(softmax(logits)),
// with target = (1 - label_smoothing) * onehot(label) + label_smoothing / classes. Samples labelled
// `ignore_index` have loss 0. The gradient is computed from the logits, so the softmax need not be
// stored: request that output only to read it (it is not differentiable). A label outside the
// classes is an error on the CPU. A GPU cannot stop there: the sample's loss is NaN and its
// gradient 0.
//
// weighted_cross_entropy: the same with a weight per class, as PyTorch's
// CrossEntropyLoss(weight=..., label_smoothing=..., reduction="none"): loss[sample] = -sum over
// classes of weight * target * log(softmax(logits)). The output `weight` is that of the label: a
// mean loss is the sum of losses divided by the sum of these weights. Ignored samples have weight
// 0.
#include "ops/label_shape.h"
#include "ops/mixed_precision.h"

namespace fleet {
namespace {

const std::map<std::string, Attribute> kLossAttributes = {{"label_smoothing", 0.0},
                                                          {"ignore_index", int64_t{-100}}};

// The shape of the loss.
Shape check_loss(const ShapeContext& context) {
  const double smoothing = context.attributes().number("label_smoothing");
  context.require(smoothing >= 0 && smoothing <= 1, "label_smoothing is not within 0..1");
  return samples_shape(context, 0, 1);
}

void check_weights(const ShapeContext& context) {
  const Shape& logits = context.shape(0);
  context.require(context.shape(2) == Shape{logits[logits.rank() - 1]},
                  "class weights " + context.shape(2).text() + " do not fit " + logits.text());
  context.require(context.dtype(2) == DType::kFloat32, "class weights are float32");
}

// The gradient's inputs are those of the loss and dloss.
void append_loss_gradient(GradientContext& context) {
  std::vector<VarId> inputs = context.forward().inputs;
  inputs.push_back(context.output_gradient(0));
  Attributes attributes;
  for (const auto& [name, unused] : kLossAttributes) {
    attributes.set(name, context.attributes().all().at(name));
  }
  context.append(context.forward().type() + "_grad", inputs, {context.input_gradient(0)},
                 attributes);
}

void define_loss_gradient(OpDef& def, const std::vector<SlotDef>& inputs) {
  def.inputs = inputs;
  def.outputs = {{"dlogits"}};
  def.attributes = kLossAttributes;
  def.inplace = {{0, 0}};
  def.infer = [](ShapeContext& context) { context.set_like(0, 0); };
}

}  // namespace

FLEET_OP(softmax_with_cross_entropy) {
  def.help =
      "the loss of softmax(logits), one per sample, as PyTorch's CrossEntropyLoss; samples "
      "labelled ignore_index have loss 0";
  def.inputs = {{"logits"}, {"label"}};
  def.outputs = {{"loss"}, {"softmax", Slot::kOptional}};
  def.attributes = kLossAttributes;
  def.infer = [](ShapeContext& context) {
    context.set(0, check_loss(context), context.dtype(0));
    context.set_like(1, 0);
  };
  def.gradient = [](GradientContext& context) {
    context.require(context.output_gradient(1) == kNoVar,
                    "the softmax of softmax_with_cross_entropy is not differentiable: use softmax");
    append_loss_gradient(context);
  };
  def.add_trait<MixedPrecision>().stays_float32 = true;
}

// dlogits = (softmax(logits) - target) * dloss
FLEET_OP(softmax_with_cross_entropy_grad) {
  define_loss_gradient(def, {{"logits"}, {"label"}, {"dloss"}});
}

FLEET_OP(weighted_cross_entropy) {
  def.help =
      "softmax_with_cross_entropy with a weight for each class; the output weight has the weights "
      "of the labels";
  def.inputs = {{"logits"}, {"label"}, {"class_weights"}};
  def.outputs = {{"loss"}, {"weight"}};
  def.attributes = kLossAttributes;
  def.infer = [](ShapeContext& context) {
    const Shape samples = check_loss(context);
    check_weights(context);
    context.set(0, samples, context.dtype(0));
    context.set(1, samples, DType::kFloat32);
  };
  def.gradient = [](GradientContext& context) {
    context.require(context.output_gradient(1) == kNoVar,
                    "the weights of weighted_cross_entropy are not differentiable");
    append_loss_gradient(context);
  };
  def.add_trait<MixedPrecision>().stays_float32 = true;
}

// dlogits = (softmax(logits) * total - weight * target) * dloss, where total = the sum over classes
// of weight * target.
FLEET_OP(weighted_cross_entropy_grad) {
  define_loss_gradient(def, {{"logits"}, {"label"}, {"class_weights"}, {"dloss"}});
}

}  // namespace fleet
