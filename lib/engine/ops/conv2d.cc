// conv2d: y[N, O, H', W'] = x[N, I, H, W] correlated with weight[O, I / groups, KH, KW], plus
// bias[O]. H' = floor((H + 2 padding - dilation (KH - 1) - 1) / stride) + 1, as in PyTorch.
//
// paddings: height and width, or top, left, bottom, right. TensorFlow's SAME needs the latter.
//
// use_cudnn: GPU only. false requires a kernel of our own, which exists for depthwise convolutions
// and is used for them in any case.
//
// winograd: allows a backend to use Winograd's method, which multiplies less and rounds more (see
// backend/cpu/convolution.h). false: never. Ignored on a GPU, where cuDNN decides.
//
// input_activation "relu": applies relu to x on the way in, for depthwise convolutions (groups =
// filters = channels), so that relu's output is never stored. Set by the pass
// fuse_relu_depthwise_conv. The weight gradient applies it again; the data gradient includes relu's
// gradient.
//
// The gradient is two operations, the weight's first. The weight gradient thus reaches its bucket
// while the data gradient is still being computed, and the activation x dies one operation earlier.
#include "ops/arithmetic.h"
#include "ops/mixed_precision.h"
#include "ops/window.h"

namespace fleet {
namespace {

const std::map<std::string, Attribute> kConv2dAttributes = {
    {"strides", std::vector<int64_t>{1, 1}},
    {"paddings", std::vector<int64_t>{0, 0}},
    {"dilations", std::vector<int64_t>{1, 1}},
    {"groups", int64_t{1}},
    {"use_cudnn", true},
    {"winograd", true},
    {"input_activation", std::string()},
};

Attributes with(Attributes attributes, const std::string& name, std::vector<int64_t> value) {
  attributes.set(name, std::move(value));
  return attributes;
}

void check_input_activation(ShapeContext& context, int64_t channels, const Shape& weight) {
  const std::string& activation = context.attributes().text("input_activation");
  if (activation.empty()) return;
  const int64_t groups = context.attributes().integer("groups");
  context.require(activation == "relu" && groups == channels && groups == weight[0],
                  "input_activation '" + activation +
                      "' is not supported: only relu, for a depthwise convolution");
}

void infer_conv2d(ShapeContext& context) {
  const Shape &x = context.shape(0), &weight = context.shape(1);
  const int64_t groups = context.attributes().integer("groups");
  context.require(x.rank() == 4 && weight.rank() == 4,
                  "x " + x.text() + " and weight " + weight.text() + " must have 4 dimensions");
  context.require(groups >= 1 && x[1] == weight[1] * groups && weight[0] % groups == 0,
                  "x " + x.text() + " does not fit weight " + weight.text() + " in " +
                      std::to_string(groups) + " groups");
  check_input_activation(context, x[1], weight);
  if (context.has_input(2)) {
    context.require(context.shape(2) == Shape{weight[0]},
                    "bias " + context.shape(2).text() + " must have one value per output channel");
  }
  const Window window = window_of(context, weight[2], weight[3], /*ends=*/true);
  const Shape y{x[0], weight[0], windows(window, 0, x[2]), windows(window, 1, x[3])};
  context.require(y[2] > 0 && y[3] > 0,
                  "x " + x.text() + " is smaller than the kernel " + weight.text());
  context.set(0, y, context.dtype(0));
}

void conv2d_gradient(GradientContext& context) {
  const Shape x = context.input_var(0).shape, weight = context.input_var(1).shape;
  const VarId dy = context.output_gradient(0);
  if (context.needs(1) || context.needs(2)) {
    context.append("conv2d_weight_grad", {context.input(0), dy},
                   {context.input_gradient(1), context.input_gradient(2)},
                   with(context.attributes(), "kernel", {weight[2], weight[3]}));
  }
  if (context.needs(0)) {
    std::vector<VarId> inputs = {context.input(1), dy, kNoVar};
    if (!context.attributes().text("input_activation").empty()) inputs[2] = context.input(0);
    context.append("conv2d_data_grad", inputs, {context.input_gradient(0)},
                   with(context.attributes(), "size", {x[2], x[3]}));
  }
}

double conv2d_forward_operations(const Program& program, const Op& op) {
  return sums_of_products(shape_of(program, op.outputs[0]), shape_of(program, op.inputs[1]));
}
std::string forward_kind(const Program& program, const Op& op) {
  return convolution_kind(op, shape_of(program, op.inputs[1]));
}

double conv2d_data_grad_operations(const Program& program, const Op& op) {
  return sums_of_products(shape_of(program, op.inputs[1]), shape_of(program, op.inputs[0]));
}
std::string data_grad_kind(const Program& program, const Op& op) {
  return convolution_kind(op, shape_of(program, op.inputs[0]));
}

Shape weight_of_gradient(const Program& program, const Op& op) {
  const std::vector<int64_t>& kernel = op.attributes.integers("kernel");
  const Shape x = shape_of(program, op.inputs[0]), dy = shape_of(program, op.inputs[1]);
  return {dy[1], x[1] / op.attributes.integer("groups"), kernel[0], kernel[1]};
}
double conv2d_weight_grad_operations(const Program& program, const Op& op) {
  if (op.outputs[0] == kNoVar) return 0;  // only the bias has a gradient
  return sums_of_products(shape_of(program, op.inputs[1]), weight_of_gradient(program, op));
}
std::string weight_grad_kind(const Program& program, const Op& op) {
  return convolution_kind(op, weight_of_gradient(program, op));
}

}  // namespace

FLEET_OP(conv2d) {
  def.help =
      "a convolution of x [N, I, H, W] with weight [O, I / groups, KH, KW], as in PyTorch; "
      "strides, paddings and dilations are for height and width, or paddings for top, left, bottom "
      "and right; use_cudnn and winograd allow a "
      "backend these methods; input_activation is set by a pass";
  def.inputs = {{"x"}, {"weight"}, {"bias", Slot::kOptional}};
  def.outputs = {{"y"}};
  def.attributes = kConv2dAttributes;
  def.add_trait<MixedPrecision>().precision = Precision::kWhite;
  def.add_trait<Arithmetic>() = {.operations = conv2d_forward_operations, .kind = forward_kind};
  def.infer = infer_conv2d;
  def.gradient = conv2d_gradient;
}

// dweight[O, I / groups, kernel...] and dbias[O] from x and dy.
FLEET_OP(conv2d_weight_grad) {
  def.inputs = {{"x"}, {"dy"}};
  def.outputs = {{"dweight", Slot::kOptional}, {"dbias", Slot::kOptional}};
  def.attributes = kConv2dAttributes;
  def.attributes["kernel"] = std::vector<int64_t>{1, 1};
  def.add_trait<MixedPrecision>().precision = Precision::kWhite;
  def.add_trait<Arithmetic>() = {.operations = conv2d_weight_grad_operations,
                                 .kind = weight_grad_kind};
  def.infer = [](ShapeContext& context) {
    const Shape &x = context.shape(0), &dy = context.shape(1);
    const std::vector<int64_t>& kernel = context.attributes().integers("kernel");
    const int64_t groups = context.attributes().integer("groups");
    context.set(0, {dy[1], x[1] / groups, kernel[0], kernel[1]}, context.dtype(0));
    context.set(1, {dy[1]}, context.dtype(0));
  };
}

// dx[N, I, size...] from weight and dy; with an input_activation also from x, its input.
FLEET_OP(conv2d_data_grad) {
  def.inputs = {{"weight"}, {"dy"}, {"x", Slot::kOptional}};
  def.outputs = {{"dx"}};
  def.attributes = kConv2dAttributes;
  def.attributes["size"] = std::vector<int64_t>{1, 1};
  def.add_trait<MixedPrecision>().precision = Precision::kWhite;
  def.add_trait<Arithmetic>() = {.operations = conv2d_data_grad_operations, .kind = data_grad_kind};
  def.infer = [](ShapeContext& context) {
    const Shape &weight = context.shape(0), &dy = context.shape(1);
    const std::vector<int64_t>& size = context.attributes().integers("size");
    const int64_t groups = context.attributes().integer("groups");
    context.set(0, {dy[0], weight[1] * groups, size[0], size[1]}, context.dtype(1));
  };
}

}  // namespace fleet
