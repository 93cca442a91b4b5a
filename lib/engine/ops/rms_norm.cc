// rms_norm (Zhang and Sennrich, 2019): y = scale * x / sqrt(mean(x^2) + epsilon) over the last
// dimension. In a 16-bit type the quotient is rounded to that type before it is multiplied by
// scale, as in transformers' LlamaRMSNorm. scale: [last dimension], float32 whatever the type of x.
// saved_rstd: 1 / sqrt(mean(x^2) + epsilon) of each row, float32 [rows], for the gradient.
//
// add_rms_norm: sum = x + residual; y = rms_norm(sum). The sum is the residual stream of a
// transformer; it is rounded to the type of x before it is normalized.
#include "graph/program.h"
#include "ops/mixed_precision.h"
#include "ops/residual_norm.h"

namespace fleet {

FLEET_OP(rms_norm) {
  def.help = "scale x / sqrt(mean(x^2) + epsilon) over the last dimension";
  def.inputs = {{"x"}, {"scale"}};
  def.outputs = {{"y"}, {"saved_rstd", Slot::kOptional}};
  def.attributes = {{"epsilon", 1e-6}};
  def.add_trait<MixedPrecision>().precision = Precision::kGray;
  def.add_trait<MixedPrecision>().float32_inputs = {1};
  def.infer = [](ShapeContext& context) {
    require_row_norm(context, {1});
    context.set_like(0, 0);
    context.set(1, {rows_of_last(context.shape(0))}, DType::kFloat32);
  };
  def.gradient = [](GradientContext& context) {
    context.require(context.output(1) != kNoVar, "its gradient needs saved_rstd");
    context.append(
        "rms_norm_grad",
        {context.input(0), context.input(1), context.output(1), context.output_gradient(0)},
        {context.input_gradient(0), context.input_gradient(1)});
  };
}

FLEET_OP(add_rms_norm) {
  def.help = "sum = x + residual, and its rms_norm";
  def.inputs = {{"x"}, {"residual"}, {"scale"}};
  def.outputs = {{"y"}, {"sum"}, {"saved_rstd", Slot::kOptional}};
  def.attributes = {{"epsilon", 1e-6}};
  def.add_trait<MixedPrecision>().precision = Precision::kGray;
  def.add_trait<MixedPrecision>().float32_inputs = {2};
  def.inplace = {{1, 1}};
  def.infer = [](ShapeContext& context) {
    require_same(context, 0, 1);
    require_row_norm(context, {2});
    context.set_like(0, 0);
    context.set_like(1, 0);
    context.set(2, {rows_of_last(context.shape(0))}, DType::kFloat32);
  };
  def.gradient = [](GradientContext& context) {
    if (pass_sum_gradient_only(context)) return;
    context.require(context.output(2) != kNoVar, "its gradient needs saved_rstd");
    const VarId dsum = summands_gradient(context);
    context.append("rms_norm_grad",
                   {context.output(1), context.input(2), context.output(2),
                    context.output_gradient(0), context.output_gradient(1)},
                   {dsum, context.input_gradient(2)});
    share_summands_gradient(context, dsum);
  };
}

// With g = dy scale, n = x rstd and means over a row: dx = (g - n mean(g n)) rstd + dsum; dscale =
// sum of dy n over the rows. dsum: the gradient of x from its other readers.
FLEET_OP(rms_norm_grad) {
  def.inputs = {{"x"}, {"scale"}, {"rstd"}, {"dy"}, {"dsum", Slot::kOptional}};
  def.outputs = {{"dx", Slot::kOptional}, {"dscale", Slot::kOptional}};
  def.add_trait<MixedPrecision>().precision = Precision::kGray;
  def.add_trait<MixedPrecision>().float32_inputs = {1, 2};
  def.inplace = {{3, 0}, {4, 0}};
  def.infer = [](ShapeContext& context) {
    context.set_like(0, 0);
    context.set(1, context.shape(1), DType::kFloat32);
  };
}

}  // namespace fleet
