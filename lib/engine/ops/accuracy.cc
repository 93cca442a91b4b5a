// accuracy: weighted counts of hits: counts = [sum of weight where the label has the largest logit,
// where it is among the k largest, sum of weight]. Among equal logits the class with the smaller
// index comes first. A label outside the classes, or one whose logit is NaN, never counts as a hit.
// Padded samples have weight 0.
#include "ops/label_shape.h"

namespace fleet {

FLEET_OP(accuracy) {
  def.inputs = {{"logits"}, {"label"}, {"weight"}};
  def.outputs = {{"counts"}};
  def.attributes = {{"k", int64_t{5}}};
  def.infer = [](ShapeContext& context) {
    const Shape samples = samples_shape(context, 0, 1);
    context.require(context.shape(2).elements() == samples.elements(),
                    "weights " + context.shape(2).text() + " do not fit " + samples.text());
    context.require(context.attributes().integer("k") >= 1, "k is below 1");
    context.set(0, {3}, DType::kFloat32);
  };
}

}  // namespace fleet
