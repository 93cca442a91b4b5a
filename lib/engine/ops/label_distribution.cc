// label_distribution: the target of a loss for one label per sample, or for two with shares: target
// [N, classes] = (1 - label_smoothing) * shares of the labels + label_smoothing / classes. A label
// of ignore_index has no share; `counted` [N] is the sum of the shares of the others, and the
// target's are those in relation to it. A sample whose labels are all ignored has targets of 0. A
// label outside the classes is an error on the CPU; on a GPU the sample's `counted` is NaN.
#include "graph/program.h"
#include "ops/mixed_precision.h"

namespace fleet {

FLEET_OP(label_distribution) {
  def.help =
      "the distribution over the classes [N, classes] of a label, or of two with shares; and the "
      "part of each sample that is not ignored";
  def.inputs = {{"label"}, {"other_label", Slot::kOptional}, {"own_share", Slot::kOptional}};
  def.outputs = {{"target"}, {"counted"}};
  def.attributes = {
      {"classes", int64_t{0}}, {"label_smoothing", 0.0}, {"ignore_index", int64_t{-100}}};
  def.infer = [](ShapeContext& context) {
    const Attributes& attributes = context.attributes();
    const Shape& samples = context.shape(0);
    context.require(samples.rank() == 1, "labels " + samples.text() + " are not [samples]");
    context.require(context.dtype(0) == DType::kInt64, "labels are not int64");
    context.require(context.has_input(1) == context.has_input(2),
                    "other labels and shares belong together");
    if (context.has_input(1)) {
      context.require(context.shape(1) == samples && context.dtype(1) == DType::kInt64,
                      "other labels do not fit the labels");
      context.require(context.shape(2) == samples && context.dtype(2) == DType::kFloat32,
                      "shares do not fit the labels");
    }
    const int64_t classes = attributes.integer("classes");
    const double smoothing = attributes.number("label_smoothing");
    context.require(classes >= 1, "no class");
    context.require(smoothing >= 0 && smoothing <= 1, "label_smoothing is not within 0..1");
    context.set(0, {samples[0], classes}, DType::kFloat32);
    context.set(1, samples, DType::kFloat32);
  };
  def.add_trait<MixedPrecision>().stays_float32 = true;
}

}  // namespace fleet
