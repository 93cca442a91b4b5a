// global_response_norm (Woo et al. 2023, ConvNeXt V2): for x [N, ..., C] with g = the Euclidean
// norms of a sample's channels over the axes between them,
//   y = x + scale x g / (mean of g over the channels + epsilon) + bias.
// scale and bias: [C], float32 whatever the type of x. saved_norms: g, float32 [N, C], for the
// gradient.
#include "graph/program.h"
#include "ops/mixed_precision.h"

namespace fleet {
namespace {

Shape norms_of(const Shape& x) { return {x[0], x[x.rank() - 1]}; }

}  // namespace

FLEET_OP(global_response_norm) {
  def.help =
      "x + scale x g / (mean(g) + epsilon) + bias for x [N, ..., C]: g has the norm of each "
      "channel of a sample, and its mean is that over the channels";
  def.inputs = {{"x"}, {"scale"}, {"bias"}};
  def.outputs = {{"y"}, {"saved_norms", Slot::kOptional}};
  def.attributes = {{"epsilon", 1e-6}};
  def.add_trait<MixedPrecision>().precision = Precision::kGray;
  def.add_trait<MixedPrecision>().float32_inputs = {1, 2};
  def.infer = [](ShapeContext& context) {
    const Shape& x = context.shape(0);
    context.require(x.rank() >= 3, "x " + x.text() + " needs samples, positions and channels");
    const Shape channels = {x[x.rank() - 1]};
    for (int i = 1; i < 3; ++i) {
      context.require(context.shape(i) == channels, "scale and bias must be " + channels.text());
    }
    context.set_like(0, 0);
    context.set(1, norms_of(x), DType::kFloat32);
  };
  def.gradient = [](GradientContext& context) {
    context.require(context.output(1) != kNoVar, "its gradient needs saved_norms");
    context.append(
        "global_response_norm_grad",
        {context.input(0), context.input(1), context.output(1), context.output_gradient(0)},
        {context.input_gradient(0), context.input_gradient(1), context.input_gradient(2)},
        {{"epsilon", context.attributes().number("epsilon")}});
  };
}

// With m = mean(g) + epsilon, t = the sums of dy x over a sample's positions and s = scale t:
//   dx = dy (1 + scale g / m) + x / g (s / m - sum(s g) / (C m^2)), without the last term if g = 0
//   dscale = the sum of t g / m over the samples, dbias = the sum of dy.
FLEET_OP(global_response_norm_grad) {
  def.inputs = {{"x"}, {"scale"}, {"norms"}, {"dy"}};
  def.outputs = {{"dx", Slot::kOptional}, {"dscale", Slot::kOptional}, {"dbias", Slot::kOptional}};
  def.attributes = {{"epsilon", 1e-6}};
  def.add_trait<MixedPrecision>().precision = Precision::kGray;
  def.add_trait<MixedPrecision>().float32_inputs = {1, 2};
  def.inplace = {{3, 0}};
  def.infer = [](ShapeContext& context) {
    context.set_like(0, 0);
    context.set(1, context.shape(1), DType::kFloat32);
    context.set(2, context.shape(1), DType::kFloat32);
  };
}

}  // namespace fleet
