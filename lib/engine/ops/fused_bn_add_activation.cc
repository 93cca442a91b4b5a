// fused_bn_add_activation: y = max(batch_norm(x) + z, 0), the join of a residual block, in as few
// passes over memory as batch_norm alone. Everything else is as in batch_norm. Inserted by the pass
// fuse_bn_add_act.
//
// mask: the elements that the activation passed; its form depends on the backend. mask, saved_mean
// and saved_variance may be omitted if there is no gradient.
#include "base/error.h"
#include "graph/program.h"
#include "ops/mixed_precision.h"

namespace fleet {
namespace {

const std::map<std::string, Attribute> kFusedBnAddActivationAttributes = {
    {"epsilon", 1e-5}, {"is_test", false}, {"activation", std::string("relu")}};

void infer_fused_bn_add_activation(ShapeContext& context) {
  const Shape& x = context.shape(0);
  context.require(x.rank() >= 2, "x " + x.text() + " must be N, C, ...");
  const Shape channels{x[1]};
  for (int i = 1; i < 5; ++i) {
    context.require(context.shape(i) == channels, "scale, bias, mean and variance must be " +
                                                      channels.text() + ", not " +
                                                      context.shape(i).text());
  }
  context.require(context.shape(5) == x,
                  "z " + context.shape(5).text() + " does not match x " + x.text());
  context.require(context.attributes().text("activation") == "relu", "activation must be \"relu\"");
  context.require(context.attributes().boolean("is_test") || x.elements() > x[1],
                  "training needs more than one value per channel, x is " + x.text());
  context.set_like(0, 0);
  context.set_like(1, 3);
  context.set_like(2, 4);
  context.set(3, channels, context.dtype(3));
  context.set(4, channels, context.dtype(4));
  context.set(5, x, DType::kUInt8);
}

void fused_bn_add_activation_gradient(GradientContext& context) {
  const bool is_test = context.attributes().boolean("is_test");
  FLEET_CHECK(context.output(5) != kNoVar, "fused_bn_add_activation needs mask for its gradient");
  FLEET_CHECK(is_test || (context.output(3) != kNoVar && context.output(4) != kNoVar),
              "fused_bn_add_activation needs saved_mean and saved_variance for its gradient");
  Attributes attributes;
  for (const auto& [name, unused] : kFusedBnAddActivationAttributes) {
    attributes.set(name, context.attributes().all().at(name));
  }
  const VarId mean = is_test ? context.input(3) : context.output(3);
  const VarId variance = is_test ? context.input(4) : context.output(4);
  context.append("fused_bn_add_activation_grad",
                 {context.input(0), context.input(1), mean, variance, context.output(5),
                  context.output_gradient(0)},
                 {context.input_gradient(0), context.input_gradient(5), context.input_gradient(1),
                  context.input_gradient(2)},
                 attributes);
}

}  // namespace

FLEET_OP(fused_bn_add_activation) {
  def.inputs = {{"x"}, {"scale"}, {"bias"}, {"mean"}, {"variance"}, {"z"}};
  def.outputs = {{"y"},
                 {"mean_out", Slot::kOptional},
                 {"variance_out", Slot::kOptional},
                 {"saved_mean", Slot::kOptional},
                 {"saved_variance", Slot::kOptional},
                 {"mask", Slot::kOptional}};
  def.attributes = kFusedBnAddActivationAttributes;
  def.attributes["momentum"] = 0.1;
  def.add_trait<MixedPrecision>().precision = Precision::kGray;
  def.add_trait<MixedPrecision>().float32_inputs = {1, 2, 3, 4};
  def.inplace = {{5, 0}};
  def.infer = infer_fused_bn_add_activation;
  def.gradient = fused_bn_add_activation_gradient;
}

// The gradient of y is the sum of all dy, so that several readers of y need no separate sum.
FLEET_OP(fused_bn_add_activation_grad) {
  def.inputs = {{"x"}, {"scale"}, {"mean"}, {"variance"}, {"mask"}, {"dy", Slot::kVariadic}};
  def.outputs = {{"dx", Slot::kOptional},
                 {"dz", Slot::kOptional},
                 {"dscale", Slot::kOptional},
                 {"dbias", Slot::kOptional}};
  def.attributes = kFusedBnAddActivationAttributes;
  def.add_trait<MixedPrecision>().precision = Precision::kGray;
  def.inplace = {{5, 1}, {6, 0}};
  def.infer = [](ShapeContext& context) {
    for (int i = 5; i < context.input_count(); ++i) {
      context.require(
          context.shape(i) == context.shape(0),
          "dy " + context.shape(i).text() + " does not match x " + context.shape(0).text());
    }
    context.set_like(0, 0);
    context.set_like(1, 0);
    context.set_like(2, 1);
    context.set_like(3, 1);
  };
}

}  // namespace fleet
