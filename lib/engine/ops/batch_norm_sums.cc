// A training batch_norm in parts, between which the ranks of a group add up their sums:
// batch_norm_sums, (all_reduce), batch_norm_finalize, batch_norm_apply; and backward:
// batch_norm_gradient_sums, (all_reduce), batch_norm_data_grad. batch_norm_finalize and
// batch_norm_data_grad are in ops/batch_norm_finalize.cc. The pass sync_batch_norm inserts them.
//
// x: N, C, ... of any floating type; statistics, parameters and sums: float32 [C].
#include "graph/program.h"
#include "ops/mixed_precision.h"

namespace fleet {
namespace {

void require_channels(const ShapeContext& context, int first, int last) {
  const Shape& x = context.shape(0);
  context.require(x.rank() >= 2 && x.rank() <= 4, "x " + x.text() + " must be N, C, ...");
  for (int i = first; i <= last; ++i) {
    context.require(context.shape(i) == Shape{x[1]},
                    "statistics and parameters must have one value per channel");
  }
}

}  // namespace

// sum, squares: of x - mean and of its square over all axes except the channel axis. `mean` is the
// running mean, which is close to the batch's, so that float32 sums lose no digits.
FLEET_OP(batch_norm_sums) {
  def.inputs = {{"x"}, {"mean"}};
  def.outputs = {{"sum"}, {"squares"}};
  def.add_trait<MixedPrecision>().precision = Precision::kGray;
  def.add_trait<MixedPrecision>().float32_inputs = {1};
  def.infer = [](ShapeContext& context) {
    require_channels(context, 1, 1);
    context.set(0, context.shape(1), DType::kFloat32);
    context.set(1, context.shape(1), DType::kFloat32);
  };
}

// y = scale (x - mean) / sqrt(variance + epsilon) + bias [+ z], and with activation "relu" its
// maximum with 0. mask: the elements that the activation passed; its form depends on the backend.
FLEET_OP(batch_norm_apply) {
  def.inputs = {{"x"}, {"scale"}, {"bias"}, {"mean"}, {"variance"}, {"z", Slot::kOptional}};
  def.outputs = {{"y"}, {"mask", Slot::kOptional}};
  def.attributes = {{"epsilon", 1e-5}, {"activation", std::string()}};
  def.add_trait<MixedPrecision>().precision = Precision::kGray;
  def.add_trait<MixedPrecision>().float32_inputs = {1, 2, 3, 4};
  def.inplace = {{5, 0}};
  def.infer = [](ShapeContext& context) {
    require_channels(context, 1, 4);
    const Shape& x = context.shape(0);
    const std::string& activation = context.attributes().text("activation");
    context.require(activation.empty() || activation == "relu",
                    "activation must be \"\" or \"relu\"");
    context.require(!context.has_input(5) || context.shape(5) == x,
                    "z does not match x " + x.text());
    context.set_like(0, 0);
    context.set(1, x, DType::kUInt8);
  };
}

// Let g be the gradient of y before the activation (if there is a mask): the sum of all dy. dbias =
// sum of g, dscale = sum of g times (x - mean) / sqrt(variance + epsilon). These are local to the
// rank and give the parameters' gradients. The outputs sum and product repeat the same values for
// the sum over ranks. dz: g itself; required if there are several dy.
FLEET_OP(batch_norm_gradient_sums) {
  def.inputs = {{"x"}, {"mean"}, {"variance"}, {"mask", Slot::kOptional}, {"dy", Slot::kVariadic}};
  def.outputs = {{"product"},
                 {"sum"},
                 {"dscale", Slot::kOptional},
                 {"dbias", Slot::kOptional},
                 {"dz", Slot::kOptional}};
  def.attributes = {{"epsilon", 1e-5}};
  def.add_trait<MixedPrecision>().precision = Precision::kGray;
  def.add_trait<MixedPrecision>().float32_inputs = {1, 2};
  def.inplace = {{4, 4}};
  def.infer = [](ShapeContext& context) {
    require_channels(context, 1, 2);
    for (int i = 4; i < context.input_count(); ++i) {
      context.require(
          context.shape(i) == context.shape(0),
          "dy " + context.shape(i).text() + " does not match x " + context.shape(0).text());
    }
    context.require(context.input_count() == 5 || context.has_output(4), "several dy without dz");
    for (int i = 0; i < 4; ++i) context.set_like(i, 1);
    context.set_like(4, 0);
  };
}

}  // namespace fleet
