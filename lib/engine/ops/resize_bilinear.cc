// resize_bilinear: images x [N, C, H, W] in another size, as PyTorch's interpolate(mode="bilinear",
// align_corners=False): output i lies at (i + 0.5) * H / H' - 0.5 of the input, not below 0.
//
// size: H' and W'. Black in mixed precision, as in Paddle's lists (bilinear_interp_v2).
#include "graph/program.h"
#include "ops/mixed_precision.h"

namespace fleet {
namespace {

Shape resized(ShapeContext& context, const Shape& x) {
  const std::vector<int64_t>& size = context.attributes().integers("size");
  context.require(x.rank() == 4, "x " + x.text() + " must have 4 dimensions");
  context.require(size.size() == 2 && size[0] >= 1 && size[1] >= 1,
                  "size must be two integers of at least 1");
  return {x[0], x[1], size[0], size[1]};
}

void define(OpDef& def) {
  def.attributes = {{"size", std::vector<int64_t>{1, 1}}};
  def.add_trait<MixedPrecision>().precision = Precision::kBlack;
  def.infer = [](ShapeContext& context) {
    context.set(0, resized(context, context.shape(0)), context.dtype(0));
  };
}

}  // namespace

FLEET_OP(resize_bilinear) {
  define(def);
  def.help =
      "images [N, C, H, W] in the size [H', W'], as PyTorch's interpolate(mode=\"bilinear\", "
      "align_corners=False)";
  def.inputs = {{"x"}};
  def.outputs = {{"y"}};
  def.gradient = [](GradientContext& context) {
    const Shape x = context.input_var(0).shape;
    context.append("resize_bilinear_grad", {context.output_gradient(0)},
                   {context.input_gradient(0)}, {{"size", std::vector<int64_t>{x[2], x[3]}}});
  };
}

// dx [N, C, size...] from dy.
FLEET_OP(resize_bilinear_grad) {
  define(def);
  def.inputs = {{"dy"}};
  def.outputs = {{"dx"}};
}

}  // namespace fleet
