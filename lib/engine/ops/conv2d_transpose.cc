// conv2d_transpose: the data gradient of a conv2d from y to x, as a layer. y[N, O, H', W'] of x[N,
// I, H, W], weight[I, O / groups, KH, KW], bias[O], with H' = (H - 1) stride - 2 padding + dilation
// (KH - 1) + 1 + output_padding, as in PyTorch.
//
// use_cudnn: GPU only. false selects our own kernel for y, which is used for a single image in any
// case.
//
// Its own data gradient is therefore a conv2d of dy with the same weight.
#include "ops/arithmetic.h"
#include "ops/mixed_precision.h"
#include "ops/window.h"

namespace fleet {
namespace {

const std::map<std::string, Attribute> kConv2dTransposeAttributes = {
    {"strides", std::vector<int64_t>{1, 1}},        {"paddings", std::vector<int64_t>{0, 0}},
    {"dilations", std::vector<int64_t>{1, 1}},      {"groups", int64_t{1}},
    {"output_padding", std::vector<int64_t>{0, 0}}, {"use_cudnn", true},
};

void infer_conv2d_transpose(ShapeContext& context) {
  const Shape &x = context.shape(0), &weight = context.shape(1);
  const int64_t groups = context.attributes().integer("groups");
  context.require(x.rank() == 4 && weight.rank() == 4,
                  "x " + x.text() + " and weight " + weight.text() + " must have 4 dimensions");
  context.require(groups >= 1 && x[1] == weight[0] && weight[0] % groups == 0,
                  "x " + x.text() + " does not fit weight " + weight.text() + " in " +
                      std::to_string(groups) + " groups");
  const Window window = window_of(context, weight[2], weight[3]);
  const std::vector<int64_t>& more = context.attributes().integers("output_padding");
  context.require(more.size() == 2, "output_padding must be two integers");
  Shape y{x[0], weight[1] * groups, 0, 0};
  if (context.has_input(2)) {
    context.require(context.shape(2) == Shape{y[1]},
                    "bias " + context.shape(2).text() + " must have one value per output channel");
  }
  for (int d = 0; d < 2; ++d) {
    context.require(more[d] >= 0 && more[d] < window.strides[d],
                    "output_padding must be at least 0 and below the stride");
    y[2 + d] =
        (x[2 + d] - 1) * window.strides[d] - 2 * window.paddings[d] + window.extent(d) + more[d];
    context.require(y[2 + d] > 0,
                    "the output is empty: x " + x.text() + " is too small for the paddings");
  }
  context.set(0, y, context.dtype(0));
}

void conv2d_transpose_gradient(GradientContext& context) {
  const Shape weight = context.input_var(1).shape;
  const VarId dy = context.output_gradient(0);
  Attributes attributes;
  for (const char* name : {"strides", "paddings", "dilations", "groups"}) {
    attributes.set(name, context.attributes().all().at(name));
  }
  if (context.needs(1) || context.needs(2)) {
    Attributes with_kernel = attributes;
    with_kernel.set("kernel", std::vector<int64_t>{weight[2], weight[3]});
    context.append("conv2d_transpose_weight_grad", {context.input(0), dy},
                   {context.input_gradient(1), context.input_gradient(2)}, with_kernel);
  }
  if (context.needs(0)) {
    context.append("conv2d", {dy, context.input(1), kNoVar}, {context.input_gradient(0)},
                   attributes);
  }
}

// Each element of x is multiplied with all weights of its channel.
double transposed_forward_operations(const Program& program, const Op& op) {
  return sums_of_products(shape_of(program, op.inputs[0]), shape_of(program, op.inputs[1]));
}
double transposed_weight_grad_operations(const Program& program, const Op& op) {
  if (op.outputs[0] == kNoVar) return 0;  // only the bias has a gradient
  const std::vector<int64_t>& kernel = op.attributes.integers("kernel");
  const Shape x = shape_of(program, op.inputs[0]), dy = shape_of(program, op.inputs[1]);
  return sums_of_products(x, {x[1], dy[1] / op.attributes.integer("groups"), kernel[0], kernel[1]});
}

}  // namespace

FLEET_OP(conv2d_transpose) {
  def.help =
      "the gradient of a convolution as a layer, as PyTorch's ConvTranspose2d: x [N, I, H, W] "
      "with weight [I, O / groups, KH, KW]";
  def.inputs = {{"x"}, {"weight"}, {"bias", Slot::kOptional}};
  def.outputs = {{"y"}};
  def.attributes = kConv2dTransposeAttributes;
  def.add_trait<MixedPrecision>().precision = Precision::kBlack;  // on none of Paddle's lists
  def.add_trait<Arithmetic>().operations = transposed_forward_operations;
  def.infer = infer_conv2d_transpose;
  def.gradient = conv2d_transpose_gradient;
}

// dweight[I, O / groups, kernel...] and dbias[O] from x[N, I, ...] and dy[N, O, ...].
FLEET_OP(conv2d_transpose_weight_grad) {
  def.inputs = {{"x"}, {"dy"}};
  def.outputs = {{"dweight", Slot::kOptional}, {"dbias", Slot::kOptional}};
  def.attributes = kConv2dTransposeAttributes;
  def.attributes.erase("output_padding");
  def.attributes.erase("use_cudnn");
  def.attributes["kernel"] = std::vector<int64_t>{1, 1};
  def.add_trait<MixedPrecision>().precision = Precision::kWhite;
  def.add_trait<Arithmetic>().operations = transposed_weight_grad_operations;
  def.infer = [](ShapeContext& context) {
    const Shape &x = context.shape(0), &dy = context.shape(1);
    const std::vector<int64_t>& kernel = context.attributes().integers("kernel");
    const int64_t groups = context.attributes().integer("groups");
    context.set(0, {x[1], dy[1] / groups, kernel[0], kernel[1]}, context.dtype(0));
    context.set(1, {dy[1]}, context.dtype(0));
  };
}

}  // namespace fleet
