// A training batch_norm in parts, with a place between them where the ranks of a group add up what
// they found: batch_norm_sums, (all_reduce), batch_norm_finalize, batch_norm_apply; and backwards
// batch_norm_gradient_sums, (all_reduce), batch_norm_data_grad. batch_norm_finalize and
// batch_norm_data_grad are in ops/batch_norm_finalize.cc. The pass sync_batch_norm makes them.
//
// x: N, C, ... of any floating type; statistics, parameters and sums: float32 [C].
#include "graph/program.h"

namespace fleet {
namespace {

void require_channels(const ShapeContext& context, int first, int last) {
  const Shape& x = context.shape(0);
  context.require(x.rank() >= 2 && x.rank() <= 4, "x " + x.text() + " must be N, C, ...");
  for (int i = first; i <= last; ++i) {
    context.require(context.shape(i) == Shape{x[1]},
                    "statistics and parameters must have one value a channel");
  }
}

}  // namespace

// sum, squares: of x - mean and of its square over all axes but the channels'. `mean` is the
// running one, which is near the batch's: so that float32 sums lose no digits.
FLEET_OP(batch_norm_sums) {
  def.inputs = {{"x"}, {"mean"}};
  def.outputs = {{"sum"}, {"squares"}};
  def.precision = Precision::kGray;
  def.float32_inputs = {1};
  def.infer = [](ShapeContext& context) {
    require_channels(context, 1, 1);
    context.set(0, context.shape(1), DType::kFloat32);
    context.set(1, context.shape(1), DType::kFloat32);
  };
}

// y = scale (x - mean) / sqrt(variance + epsilon) + bias [+ z], and with activation "relu" its
// maximum with 0. mask: which elements the activation passed on; its form is the backend's.
FLEET_OP(batch_norm_apply) {
  def.inputs = {{"x"}, {"scale"}, {"bias"}, {"mean"}, {"variance"}, {"z", Slot::kOptional}};
  def.outputs = {{"y"}, {"mask", Slot::kOptional}};
  def.attributes = {{"epsilon", 1e-5}, {"activation", std::string()}};
  def.precision = Precision::kGray;
  def.float32_inputs = {1, 2, 3, 4};
  def.inplace = {{5, 0}};
  def.infer = [](ShapeContext& context) {
    require_channels(context, 1, 4);
    const Shape& x = context.shape(0);
    const std::string& activation = context.attributes().text("activation");
    context.require(activation.empty() || activation == "relu",
                    "activation must be \"\" or \"relu\"");
    context.require(!context.has_input(5) || context.shape(5) == x, "z is not as x " + x.text());
    context.set_like(0, 0);
    context.set(1, x, DType::kUInt8);
  };
}

// Of the gradient of y, which is the sum of all dy, before the activation (where there is a mask):
// dbias = its sum, dscale = the sum of it times (x - mean) / sqrt(variance + epsilon). They are
// this rank's and make the parameters' gradients; sum and product are the same values once more,
// for the ranks to add up. dz: that gradient itself; required where there are several dy.
FLEET_OP(batch_norm_gradient_sums) {
  def.inputs = {{"x"}, {"mean"}, {"variance"}, {"mask", Slot::kOptional}, {"dy", Slot::kVariadic}};
  def.outputs = {{"product"},
                 {"sum"},
                 {"dscale", Slot::kOptional},
                 {"dbias", Slot::kOptional},
                 {"dz", Slot::kOptional}};
  def.attributes = {{"epsilon", 1e-5}};
  def.precision = Precision::kGray;
  def.float32_inputs = {1, 2};
  def.inplace = {{4, 4}};
  def.infer = [](ShapeContext& context) {
    require_channels(context, 1, 2);
    for (int i = 4; i < context.input_count(); ++i) {
      context.require(context.shape(i) == context.shape(0),
                      "dy " + context.shape(i).text() + " is not as x " + context.shape(0).text());
    }
    context.require(context.input_count() == 5 || context.has_output(4), "several dy without dz");
    for (int i = 0; i < 4; ++i) context.set_like(i, 1);
    context.set_like(4, 0);
  };
}

}  // namespace fleet
