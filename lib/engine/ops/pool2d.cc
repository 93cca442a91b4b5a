// pool2d: the maximum or the mean over windows of an image x[N, C, H, W].
//
// type: "max" or "avg". global: one window over the whole image (kernel, strides and paddings are
// ignored). ceil_mode rounds the number of windows up (PyTorch's rule: no window starts beyond the
// image). exclusive: a mean divides by the number of elements inside the image; otherwise by the
// size of the kernel (Paddle's meaning, PyTorch's count_include_pad). mask: the position of each
// maximum, in the backend's form; for the gradient of "max".
#include "ops/mixed_precision.h"
#include "ops/window.h"

namespace fleet {
namespace {

const std::map<std::string, Attribute> kPool2dAttributes = {
    {"type", std::string("max")},
    {"kernel", std::vector<int64_t>{1, 1}},
    {"strides", std::vector<int64_t>{1, 1}},
    {"paddings", std::vector<int64_t>{0, 0}},
    {"ceil_mode", false},
    {"exclusive", true},
    {"global", false},
};

void infer_pool2d(ShapeContext& context) {
  const Shape& x = context.shape(0);
  const Attributes& attributes = context.attributes();
  context.require(x.rank() == 4, "x " + x.text() + " must have 4 dimensions");
  context.require(attributes.text("type") == "max" || attributes.text("type") == "avg",
                  "type must be \"max\" or \"avg\"");
  Shape y{x[0], x[1], 1, 1};
  if (!attributes.boolean("global")) {
    const std::vector<int64_t>& kernel = attributes.integers("kernel");
    context.require(kernel.size() == 2, "kernel must be two integers");
    const Window window = window_of(context, kernel[0], kernel[1]);
    for (int d = 0; d < 2; ++d) {
      context.require(2 * window.paddings[d] <= window.kernel[d],
                      "paddings must be at most half the kernel");
      y[2 + d] = attributes.boolean("ceil_mode") ? windows_rounded_up(window, d, x[2 + d])
                                                 : windows(window, d, x[2 + d]);
    }
    context.require(y[2] > 0 && y[3] > 0, "x " + x.text() + " is smaller than the kernel");
  }
  context.set(0, y, context.dtype(0));
  context.set(1, y, DType::kUInt8);
}

void pool2d_gradient(GradientContext& context) {
  const bool is_max = context.attributes().text("type") == "max";
  context.require(!is_max || context.output(1) != kNoVar, "a maximum needs mask for its gradient");
  const Shape x = context.input_var(0).shape;
  Attributes attributes = context.attributes();
  attributes.set("size", std::vector<int64_t>{x[2], x[3]});
  context.append(
      "pool2d_grad",
      {context.output(0), context.output_gradient(0), is_max ? context.output(1) : kNoVar},
      {context.input_gradient(0)}, attributes);
}

}  // namespace

FLEET_OP(pool2d) {
  def.help =
      "the maximum (type \"max\") or mean (\"avg\") over windows of an image [N, C, H, W]; global "
      "takes the whole image as one window; ceil_mode rounds the number of windows up; exclusive "
      "divides a mean by the elements inside the image only";
  def.inputs = {{"x"}};
  def.outputs = {{"y"}, {"mask", Slot::kOptional}};
  def.attributes = kPool2dAttributes;
  def.add_trait<MixedPrecision>().precision = Precision::kGray;
  def.infer = infer_pool2d;
  def.gradient = pool2d_gradient;
}

// dx[N, C, size...]. y determines the layout of x; mask is present for "max".
FLEET_OP(pool2d_grad) {
  def.inputs = {{"y"}, {"dy"}, {"mask", Slot::kOptional}};
  def.outputs = {{"dx"}};
  def.attributes = kPool2dAttributes;
  def.attributes["size"] = std::vector<int64_t>{1, 1};
  def.add_trait<MixedPrecision>().precision = Precision::kGray;
  def.infer = [](ShapeContext& context) {
    const Shape& dy = context.shape(1);
    const std::vector<int64_t>& size = context.attributes().integers("size");
    context.set(0, {dy[0], dy[1], size[0], size[1]}, context.dtype(1));
  };
}

}  // namespace fleet
