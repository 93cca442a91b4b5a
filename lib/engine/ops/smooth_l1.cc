// smooth_l1: y = x^2 / (2 beta) if |x| < beta, else |x| - beta / 2 (Girshick 2015, Fast R-CNN; with
// beta as in PyTorch's SmoothL1Loss). beta 0: |x|.
#include "graph/program.h"
#include "ops/mixed_precision.h"

namespace fleet {

FLEET_OP(smooth_l1) {
  def.help = "x^2 / (2 beta) if |x| < beta, else |x| - beta / 2";
  def.inputs = {{"x"}};
  def.outputs = {{"y"}};
  def.attributes = {{"beta", 1.0}};
  def.add_trait<MixedPrecision>().stays_float32 = true;
  def.inplace = {{0, 0}};
  def.infer = [](ShapeContext& context) {
    context.require(context.attributes().number("beta") >= 0, "beta is below 0");
    context.set_like(0, 0);
  };
  def.gradient = [](GradientContext& context) {
    context.append("smooth_l1_grad", {context.input(0), context.output_gradient(0)},
                   {context.input_gradient(0)}, {{"beta", context.attributes().number("beta")}});
  };
}

// dx = dy * (|x| < beta ? x / beta : sign(x))
FLEET_OP(smooth_l1_grad) {
  def.inputs = {{"x"}, {"dy"}};
  def.outputs = {{"dx"}};
  def.attributes = {{"beta", 1.0}};
  def.inplace = {{1, 0}};
  def.infer = [](ShapeContext& context) { context.set_like(0, 1); };
}

}  // namespace fleet
