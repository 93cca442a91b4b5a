// batch_norm: y = scale (x - mean) / sqrt(variance + epsilon) + bias, with separate statistics for
// each channel (axis 1) over all other axes; activation "relu" makes it max(y, 0) in the same pass,
// and "relu6", "silu" and "hardswish" apply theirs. The gradient of the last three,
// batch_norm_activation_grad, computes the activation's input again from x instead of reading a
// mask; the pass fuse_bn_recomputed_act inserts them for backends that have these kernels.
//
// Training: mean and variance are the batch's (biased variance). The running ones are updated as in
// PyTorch: running = (1 - momentum) running + momentum batch, with the unbiased variance (Paddle's
// momentum is 1 - this one). mean_out and variance_out are the states themselves. If a channel's
// batch statistics are not finite, its running ones stay unchanged (in PyTorch they become NaN for
// good). is_test: mean and variance are the running ones, which do not change.
//
// saved_mean, saved_variance: the batch's statistics for the gradient. mask: the elements that the
// activation passed; its form depends on the backend. All of them may be omitted if there is no
// gradient.
//
// fused_bn_add_activation: y = max(batch_norm(x) + z, 0), the join of a residual block, in as few
// passes over memory as batch_norm alone; the rest is as in batch_norm. Inserted by the pass
// fuse_bn_add_act.
#include <algorithm>

#include "graph/program.h"
#include "ops/activation.h"
#include "ops/mixed_precision.h"

namespace fleet {
namespace {

std::map<std::string, Attribute> norm_attributes(const std::string& activation) {
  return {{"epsilon", 1e-5}, {"is_test", false}, {"activation", activation}};
}

const std::vector<std::string> kRecomputed = {"relu6", "silu", "hardswish"};

bool is_recomputed(const std::string& activation) {
  return std::find(kRecomputed.begin(), kRecomputed.end(), activation) != kRecomputed.end();
}

void infer_norm(ShapeContext& context) {
  const Shape& x = context.shape(0);
  const Attributes& attributes = context.attributes();
  const bool adds = context.input_count() > 5;
  context.require(x.rank() >= 2 && x.rank() <= 4, "x " + x.text() + " must be N, C, ...");
  const Shape channels{x[1]};
  for (int i = 1; i < 5; ++i) {
    context.require(context.shape(i) == channels, "scale, bias, mean and variance must be " +
                                                      channels.text() + ", not " +
                                                      context.shape(i).text());
  }
  if (adds) {
    context.require(context.shape(5) == x,
                    "z " + context.shape(5).text() + " does not match x " + x.text());
  }
  context.require(attributes.number("epsilon") > 0, "epsilon must be positive");
  const std::string& activation = attributes.text("activation");
  context.require(
      activation == "relu" || (!adds && (activation.empty() || is_recomputed(activation))),
      adds ? "activation must be \"relu\""
           : "activation must be \"\", \"relu\", \"relu6\", \"silu\" or \"hardswish\"");
  context.require(attributes.boolean("is_test") || x.elements() > x[1],
                  "training needs more than one value per channel, x is " + x.text());
  context.set_like(0, 0);
  context.set_like(1, 3);
  context.set_like(2, 4);
  context.set(3, channels, context.dtype(3));
  context.set(4, channels, context.dtype(4));
  context.set(5, x, DType::kUInt8);
}

void append_norm_gradient(GradientContext& context) {
  const std::string& type = context.forward().type();
  const bool is_test = context.attributes().boolean("is_test");
  const std::string& activation = context.attributes().text("activation");
  const bool recomputed = is_recomputed(activation), fused = !activation.empty() && !recomputed;
  context.require(is_test || (context.output(3) != kNoVar && context.output(4) != kNoVar),
                  type + " needs saved_mean and saved_variance for its gradient");
  context.require(!fused || context.output(5) != kNoVar,
                  type + " with an activation needs mask for its gradient");
  Attributes attributes;
  for (const auto& [name, unused] : norm_attributes("")) {
    attributes.set(name, context.attributes().all().at(name));
  }
  const VarId mean = is_test ? context.input(3) : context.output(3);
  const VarId variance = is_test ? context.input(4) : context.output(4);
  if (recomputed) {
    context.append(
        "batch_norm_activation_grad",
        {context.input(0), context.input(1), context.input(2), mean, variance,
         context.output_gradient(0)},
        {context.input_gradient(0), context.input_gradient(1), context.input_gradient(2)},
        attributes);
    return;
  }
  std::vector<VarId> outputs = {context.input_gradient(0)};
  if (context.input_count() > 5) outputs.push_back(context.input_gradient(5));
  outputs.push_back(context.input_gradient(1));
  outputs.push_back(context.input_gradient(2));
  context.append(type + "_grad",
                 {context.input(0), context.input(1), mean, variance,
                  fused ? context.output(5) : kNoVar, context.output_gradient(0)},
                 outputs, attributes);
}

void define_norm(OpDef& def, const std::string& activation) {
  def.inputs = {{"x"}, {"scale"}, {"bias"}, {"mean"}, {"variance"}};
  def.outputs = {{"y"},
                 {"mean_out", Slot::kOptional},
                 {"variance_out", Slot::kOptional},
                 {"saved_mean", Slot::kOptional},
                 {"saved_variance", Slot::kOptional},
                 {"mask", Slot::kOptional}};
  def.attributes = norm_attributes(activation);
  def.attributes["momentum"] = 0.1;
  def.add_trait<MixedPrecision>().precision = Precision::kGray;
  def.add_trait<MixedPrecision>().float32_inputs = {1, 2, 3, 4};
  def.infer = infer_norm;
  def.gradient = append_norm_gradient;
}

}  // namespace

FLEET_OP(batch_norm) {
  def.help =
      "y = scale (x - mean) / sqrt(variance + epsilon) + bias, with separate statistics for each "
      "channel; momentum is the share of the batch in the running statistics, as in PyTorch; "
      "is_test uses the running ones; activation \"relu\", \"relu6\", \"silu\" or \"hardswish\" "
      "is applied to y";
  define_norm(def, "");
  def.add_trait<FusesActivations>().types = {"relu"};
  def.add_trait<RecomputesActivations>().types = kRecomputed;
}

// mean and variance are the statistics that normalized x; with is_test they are constants.
FLEET_OP(batch_norm_grad) {
  def.inputs = {{"x"}, {"scale"}, {"mean"}, {"variance"}, {"mask", Slot::kOptional}, {"dy"}};
  def.outputs = {{"dx", Slot::kOptional}, {"dscale", Slot::kOptional}, {"dbias", Slot::kOptional}};
  def.attributes = norm_attributes("");
  def.add_trait<MixedPrecision>().precision = Precision::kGray;
  def.inplace = {{5, 0}};
  def.infer = [](ShapeContext& context) {
    context.set_like(0, 0);
    context.set_like(1, 1);
    context.set_like(2, 1);
  };
}

// As batch_norm_grad, of y = activation(n) with n = scale (x - mean) / sqrt(variance + epsilon) +
// bias; n is computed again. The gradient of y is the sum of all dy.
FLEET_OP(batch_norm_activation_grad) {
  def.inputs = {{"x"}, {"scale"}, {"bias"}, {"mean"}, {"variance"}, {"dy", Slot::kVariadic}};
  def.outputs = {{"dx", Slot::kOptional}, {"dscale", Slot::kOptional}, {"dbias", Slot::kOptional}};
  def.attributes = norm_attributes("silu");
  def.add_trait<MixedPrecision>().precision = Precision::kGray;
  def.inplace = {{5, 0}};
  def.infer = [](ShapeContext& context) {
    context.require(is_recomputed(context.attributes().text("activation")),
                    "activation must be \"relu6\", \"silu\" or \"hardswish\"");
    for (int i = 5; i < context.input_count(); ++i) {
      context.require(
          context.shape(i) == context.shape(0),
          "dy " + context.shape(i).text() + " does not match x " + context.shape(0).text());
    }
    context.set_like(0, 0);
    context.set_like(1, 1);
    context.set_like(2, 1);
  };
}

FLEET_OP(fused_bn_add_activation) {
  define_norm(def, "relu");
  def.inputs.push_back({"z"});
  def.inplace = {{5, 0}};
}

// The gradient of y is the sum of all dy, so that several readers of y need no separate sum.
FLEET_OP(fused_bn_add_activation_grad) {
  def.inputs = {{"x"}, {"scale"}, {"mean"}, {"variance"}, {"mask"}, {"dy", Slot::kVariadic}};
  def.outputs = {{"dx", Slot::kOptional},
                 {"dz", Slot::kOptional},
                 {"dscale", Slot::kOptional},
                 {"dbias", Slot::kOptional}};
  def.attributes = norm_attributes("relu");
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
