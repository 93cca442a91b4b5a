// adaptive_clip: bounds the gradient of each unit of a parameter by the unit's own size (Brock et
// al., 2021, "High-Performance Large-Scale Image Recognition Without Normalization"), as timm's
// adaptive_clip_grad:
//   bound = clip_factor * max(|w|, epsilon)
//   clipped = g if |g| < bound, else g * bound / max(|g|, 1e-6)
// A unit is a row of the first dimension; a parameter of fewer than two dimensions is one unit. |x|
// is the Euclidean norm over the unit. g is gradient * unscale; unscale float32 [1] (absent: 1).
// All are float32.
#include "graph/program.h"
#include "ops/mixed_precision.h"

namespace fleet {

FLEET_OP(adaptive_clip) {
  def.inputs = {{"gradient"}, {"parameter"}, {"unscale", Slot::kOptional}};
  def.outputs = {{"clipped"}};
  def.attributes = {{"clip_factor", 0.01}, {"epsilon", 1e-3}};
  def.add_trait<MixedPrecision>().on_custom_lists = false;
  def.inplace = {{0, 0}};
  def.infer = [](ShapeContext& context) {
    context.require(
        context.shape(0) == context.shape(1),
        "a gradient " + context.shape(0).text() + " of a parameter " + context.shape(1).text());
    context.set_like(0, 0);
  };
}

}  // namespace fleet
