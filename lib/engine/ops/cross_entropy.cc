// cross_entropy: loss = -log(probability of the label), one per sample. Samples labelled
// `ignore_index` have loss 0. If the probabilities come from a softmax, softmax_with_cross_entropy
// is more stable and faster.
#include "ops/label_shape.h"

namespace fleet {

FLEET_OP(cross_entropy) {
  def.help =
      "-log(probability of the label), one per sample; samples labelled ignore_index have loss 0";
  def.inputs = {{"probability"}, {"label"}};
  def.outputs = {{"loss"}};
  def.attributes = {{"ignore_index", int64_t{-100}}};
  def.infer = [](ShapeContext& context) {
    context.set(0, samples_shape(context, 0, 1), context.dtype(0));
  };
  def.gradient = [](GradientContext& context) {
    context.append("cross_entropy_grad",
                   {context.input(0), context.input(1), context.output_gradient(0)},
                   {context.input_gradient(0)},
                   {{"ignore_index", context.attributes().integer("ignore_index")}});
  };
}

// dprobability = -dloss / probability at the label, 0 elsewhere
FLEET_OP(cross_entropy_grad) {
  def.inputs = {{"probability"}, {"label"}, {"dloss"}};
  def.outputs = {{"dprobability"}};
  def.attributes = {{"ignore_index", int64_t{-100}}};
  def.inplace = {{0, 0}};
  def.infer = [](ShapeContext& context) { context.set_like(0, 0); };
}

}  // namespace fleet
