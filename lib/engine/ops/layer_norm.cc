// layer_norm (Ba, Kiros and Hinton, 2016): y = scale (x - mean) / sqrt(variance + epsilon) + bias,
// with separate statistics for each row (biased variance). A row spans the dimensions from
// `begin_norm_axis` on. scale and bias have one value for each of its elements; they and the
// statistics are float32 whatever the type of x. saved_mean, saved_variance: [rows], for the
// gradient; may be omitted without one.
//
// add_layer_norm: sum = x + residual; y = layer_norm(sum) over the last dimension. The sum is
// rounded to the type of x before it is normalized.
#include "graph/program.h"
#include "ops/mixed_precision.h"
#include "ops/residual_norm.h"

namespace fleet {
namespace {

const std::map<std::string, Attribute> kLayerNormAttributes = {{"epsilon", 1e-5},
                                                               {"begin_norm_axis", int64_t{1}}};

void infer_layer_norm(ShapeContext& context) {
  const Shape& x = context.shape(0);
  const int64_t axis = context.attributes().integer("begin_norm_axis");
  context.require(axis >= 1 && axis < x.rank(),
                  "no rows from axis " + std::to_string(axis) + " of " + x.text());
  context.require(context.attributes().number("epsilon") > 0, "epsilon must be positive");
  int64_t rows = 1;
  for (int d = 0; d < axis; ++d) rows *= x[d];
  for (int i = 1; i < 3; ++i) {
    if (!context.has_input(i)) continue;
    context.require(
        context.shape(i).elements() * rows == x.elements(),
        "scale and bias " + context.shape(i).text() + " do not fit the rows of " + x.text());
  }
  context.set_like(0, 0);
  context.set(1, {rows}, DType::kFloat32);
  context.set(2, {rows}, DType::kFloat32);
}

void layer_norm_gradient(GradientContext& context) {
  context.require(context.output(1) != kNoVar && context.output(2) != kNoVar,
                  "layer_norm needs saved_mean and saved_variance for its gradient");
  context.append("layer_norm_grad",
                 {context.input(0), context.input(1), context.output(1), context.output(2),
                  context.output_gradient(0)},
                 {context.input_gradient(0), context.input_gradient(1), context.input_gradient(2)},
                 context.attributes());
}

void add_layer_norm_gradient(GradientContext& context) {
  if (pass_sum_gradient_only(context)) return;
  context.require(context.output(2) != kNoVar && context.output(3) != kNoVar,
                  "its gradient needs saved_mean and saved_variance");
  const VarId dsum = summands_gradient(context);
  const int64_t axis = context.input_var(0).shape.rank() - 1;
  context.append("layer_norm_grad",
                 {context.output(1), context.input(2), context.output(2), context.output(3),
                  context.output_gradient(0), context.output_gradient(1)},
                 {dsum, context.input_gradient(2), context.input_gradient(3)},
                 {{"epsilon", context.attributes().number("epsilon")}, {"begin_norm_axis", axis}});
  share_summands_gradient(context, dsum);
}

}  // namespace

FLEET_OP(layer_norm) {
  def.help =
      "scale (x - mean) / sqrt(variance + epsilon) + bias, with separate statistics for each row; "
      "a row has the dimensions from begin_norm_axis on";
  def.inputs = {{"x"}, {"scale", Slot::kOptional}, {"bias", Slot::kOptional}};
  def.outputs = {{"y"}, {"saved_mean", Slot::kOptional}, {"saved_variance", Slot::kOptional}};
  def.attributes = kLayerNormAttributes;
  def.add_trait<MixedPrecision>().precision = Precision::kGray;
  def.add_trait<MixedPrecision>().float32_inputs = {1, 2};
  def.infer = infer_layer_norm;
  def.gradient = layer_norm_gradient;
}

FLEET_OP(add_layer_norm) {
  def.help = "sum = x + residual, and its layer_norm over the last dimension";
  def.inputs = {{"x"}, {"residual"}, {"scale", Slot::kOptional}, {"bias", Slot::kOptional}};
  def.outputs = {
      {"y"}, {"sum"}, {"saved_mean", Slot::kOptional}, {"saved_variance", Slot::kOptional}};
  def.attributes = {{"epsilon", 1e-5}};
  def.add_trait<MixedPrecision>().precision = Precision::kGray;
  def.add_trait<MixedPrecision>().float32_inputs = {2, 3};
  def.inplace = {{1, 1}};
  def.infer = [](ShapeContext& context) {
    require_same(context, 0, 1);
    require_row_norm(context, {2, 3});
    context.set_like(0, 0);
    context.set_like(1, 0);
    const int64_t rows = rows_of_last(context.shape(0));
    context.set(2, {rows}, DType::kFloat32);
    context.set(3, {rows}, DType::kFloat32);
  };
  def.gradient = add_layer_norm_gradient;
}

// With g = dy scale, n = (x - mean) / sqrt(variance + epsilon) and means over a row:
// dx = (g - mean(g) - n mean(g n)) / sqrt(variance + epsilon) + dsum; dscale = sum of dy n and
// dbias = sum of dy over the rows. dsum: the gradient of x from its other readers.
FLEET_OP(layer_norm_grad) {
  def.inputs = {{"x"},  {"scale", Slot::kOptional}, {"mean"}, {"variance"},
                {"dy"}, {"dsum", Slot::kOptional}};
  def.outputs = {{"dx", Slot::kOptional}, {"dscale", Slot::kOptional}, {"dbias", Slot::kOptional}};
  def.attributes = kLayerNormAttributes;
  def.add_trait<MixedPrecision>().precision = Precision::kGray;
  def.add_trait<MixedPrecision>().float32_inputs = {1, 2, 3};
  def.inplace = {{4, 0}, {5, 0}};
  def.infer = [](ShapeContext& context) {
    const Shape& x = context.shape(0);
    const Shape row{x.elements() / context.shape(2).elements()};
    context.set_like(0, 0);
    for (int o = 1; o < 3; ++o) {
      context.set(o, context.has_input(1) ? context.shape(1) : row, DType::kFloat32);
    }
  };
}

}  // namespace fleet
