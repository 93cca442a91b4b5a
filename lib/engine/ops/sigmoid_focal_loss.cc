// sigmoid_focal_loss: binary cross entropy of each logit with its target, which counts less the
// better it is predicted; the mean over the classes of a sample (Lin et al. 2017; torchvision's
// sigmoid_focal_loss). alpha: weight of targets of 1, and 1 - alpha of those of 0; below 0: none.
// gamma 0: plain cross entropy. A target counts as target * target_scale + target_bias, and then,
// unless target_threshold is below 0, as 1 above that and else as 0. logits [N, C], target float32
// [N, C] in [0, 1]; positive_weights float32 [C] or [1]: factors of -log(p) of each class, as
// PyTorch's pos_weight; loss [N].
#include "graph/program.h"
#include "ops/mixed_precision.h"

namespace fleet {
namespace {

const std::map<std::string, Attribute> kFocalAttributes = {{"alpha", -1.0},
                                                           {"gamma", 0.0},
                                                           {"target_scale", 1.0},
                                                           {"target_bias", 0.0},
                                                           {"target_threshold", -1.0}};

}  // namespace

FLEET_OP(sigmoid_focal_loss) {
  def.help =
      "binary cross entropy of logits [N, C] with targets in [0, 1] times (1 - p)^gamma, p the "
      "probability of the target; the mean over the classes of a sample";
  def.inputs = {{"logits"}, {"target"}, {"positive_weights", Slot::kOptional}};
  def.outputs = {{"loss"}};
  def.attributes = kFocalAttributes;
  def.infer = [](ShapeContext& context) {
    const Shape& logits = context.shape(0);
    context.require(logits.rank() == 2, "logits " + logits.text() + " are not [samples, classes]");
    context.require(logits == context.shape(1),
                    "targets " + context.shape(1).text() + " do not fit logits " + logits.text());
    context.require(context.dtype(1) == DType::kFloat32, "targets are float32");
    if (context.has_input(2)) {
      const Shape& weights = context.shape(2);
      context.require(weights == Shape{logits[1]} || weights == Shape{1},
                      "weights " + weights.text() + " do not fit logits " + logits.text());
      context.require(context.dtype(2) == DType::kFloat32, "weights are float32");
    }
    const Attributes& attributes = context.attributes();
    context.require(attributes.number("gamma") >= 0, "gamma is below 0");
    context.require(attributes.number("alpha") <= 1, "alpha is above 1");
    context.set(0, {logits[0]}, context.dtype(0));
  };
  def.gradient = [](GradientContext& context) {
    context.require(!context.needs(1), "the targets are not differentiable");
    const VarId weights = context.input_count() > 2 ? context.input(2) : kNoVar;
    Attributes attributes;
    for (const auto& [name, unused] : kFocalAttributes) {
      attributes.set(name, context.attributes().all().at(name));
    }
    context.append("sigmoid_focal_loss_grad",
                   {context.input(0), context.input(1), weights, context.output_gradient(0)},
                   {context.input_gradient(0)}, attributes);
  };
  def.add_trait<MixedPrecision>().stays_float32 = true;
}

FLEET_OP(sigmoid_focal_loss_grad) {
  def.inputs = {{"logits"}, {"target"}, {"positive_weights", Slot::kOptional}, {"dloss"}};
  def.outputs = {{"dlogits"}};
  def.attributes = kFocalAttributes;
  def.inplace = {{0, 0}};
  def.infer = [](ShapeContext& context) { context.set_like(0, 0); };
}

}  // namespace fleet
