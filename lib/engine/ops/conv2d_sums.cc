// Convolutions that include work of a batch normalization before or after them, which would
// otherwise need another pass over memory: its statistics, its transformation, its relu, and the
// corresponding gradients. Strides, paddings, dilations and groups as in conv2d, without bias.
// Inserted by the pass fuse_depthwise_norm.
#include <algorithm>

#include "ops/arithmetic.h"
#include "ops/mixed_precision.h"
#include "ops/window.h"

namespace fleet {
namespace {

const std::map<std::string, Attribute> kConv2dSumsAttributes = {
    {"strides", std::vector<int64_t>{1, 1}},
    {"paddings", std::vector<int64_t>{0, 0}},
    {"dilations", std::vector<int64_t>{1, 1}},
    {"groups", int64_t{1}},
};
// Of a transformed input. Others than relu: depthwise convolutions only.
constexpr const char* kNormActivation = "norm_activation";

void require_activation(const ShapeContext& context) {
  const std::string& activation = context.attributes().text(kNormActivation);
  const std::vector<std::string> known = {"", "relu", "relu6", "hardswish"};
  context.require(std::find(known.begin(), known.end(), activation) != known.end(),
                  "norm_activation must be \"\", \"relu\", \"relu6\" or \"hardswish\"");
}

double sums_operations(const Program& program, const Op& op) {
  return sums_of_products(shape_of(program, op.outputs[0]), shape_of(program, op.inputs[1]));
}
std::string sums_kind(const Program& program, const Op& op) {
  return convolution_kind(op, shape_of(program, op.inputs[1]));
}
double sums_weight_grad_operations(const Program& program, const Op& op) {
  return sums_of_products(shape_of(program, op.inputs[1]), shape_of(program, op.outputs[0]));
}
std::string sums_weight_grad_kind(const Program& program, const Op& op) {
  return convolution_kind(op, shape_of(program, op.outputs[0]));
}
double sums_data_grad_operations(const Program& program, const Op& op) {
  return sums_of_products(shape_of(program, op.inputs[1]), shape_of(program, op.inputs[0]));
}
std::string sums_data_grad_kind(const Program& program, const Op& op) {
  return convolution_kind(op, shape_of(program, op.inputs[0]));
}

}  // namespace

// y = conv2d(x), or conv2d(activation(factor x + constant)) with factor and constant[I]; sum and
// squares[O]: of y - pivot and of its squares over all other axes, in float32. pivot[O]: a value
// near the mean, so that float32 sums lose no digits; 0 if absent.
FLEET_OP(conv2d_sums) {
  def.inputs = {{"x"},
                {"weight"},
                {"factor", Slot::kOptional},
                {"constant", Slot::kOptional},
                {"pivot", Slot::kOptional}};
  def.outputs = {{"y"}, {"sum"}, {"squares"}};
  def.attributes = kConv2dSumsAttributes;
  def.attributes[kNormActivation] = std::string("relu");
  def.add_trait<MixedPrecision>().precision = Precision::kWhite;
  def.add_trait<Arithmetic>() = {.operations = sums_operations, .kind = sums_kind};
  def.infer = [](ShapeContext& context) {
    require_activation(context);
    const Shape &x = context.shape(0), &weight = context.shape(1);
    context.require(x.rank() == 4 && weight.rank() == 4 &&
                        x[1] == weight[1] * context.attributes().integer("groups"),
                    "x " + x.text() + " does not fit weight " + weight.text());
    context.require(context.has_input(2) == context.has_input(3),
                    "factor and constant must be given together");
    const bool depthwise = weight[1] == 1;
    const Window window = window_of(context, weight[2], weight[3], /*ends=*/depthwise);
    const Shape y{x[0], weight[0], windows(window, 0, x[2]), windows(window, 1, x[3])};
    context.require(y[2] > 0 && y[3] > 0, "x " + x.text() + " is smaller than the kernel");
    context.set(0, y, context.dtype(0));
    context.set(1, {y[1]}, DType::kFloat32);
    context.set(2, {y[1]}, DType::kFloat32);
  };
}

// dweight of conv2d_sums with factor and constant.
FLEET_OP(conv2d_sums_weight_grad) {
  def.inputs = {{"x"}, {"dy"}, {"factor"}, {"constant"}};
  def.outputs = {{"dweight"}};
  def.attributes = kConv2dSumsAttributes;
  def.attributes["kernel"] = std::vector<int64_t>{1, 1};
  def.attributes[kNormActivation] = std::string("relu");
  def.add_trait<MixedPrecision>().precision = Precision::kWhite;
  def.add_trait<Arithmetic>() = {.operations = sums_weight_grad_operations,
                                 .kind = sums_weight_grad_kind};
  def.infer = [](ShapeContext& context) {
    require_activation(context);
    const Shape &x = context.shape(0), &dy = context.shape(1);
    const std::vector<int64_t>& kernel = context.attributes().integers("kernel");
    context.set(0, {dy[1], x[1] / context.attributes().integer("groups"), kernel[0], kernel[1]},
                context.dtype(0));
  };
}

// For conv2d(activation(n)) with n = scale (x - mean) inverse + bias: computes dz, the gradient of
// n, and those of scale and bias.
FLEET_OP(conv2d_relu_norm_grad) {
  def.inputs = {{"weight"}, {"dy"}, {"x"}, {"mean"}, {"inverse"}, {"scale"}, {"bias"}};
  def.outputs = {{"dz"}, {"dscale"}, {"dbias"}};
  def.attributes = kConv2dSumsAttributes;
  def.attributes[kNormActivation] = std::string("relu");
  def.add_trait<MixedPrecision>().precision = Precision::kWhite;
  def.add_trait<Arithmetic>() = {.operations = sums_data_grad_operations,
                                 .kind = sums_data_grad_kind};
  def.infer = [](ShapeContext& context) {
    require_activation(context);
    context.set_like(0, 2);
    context.set_like(1, 5);
    context.set_like(2, 6);
  };
}

}  // namespace fleet
