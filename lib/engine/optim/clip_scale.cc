// clip_scale: the factor unscale * clip_norm / max(norm, clip_norm) that bounds a norm, given its
// square; norm = unscale * sqrt(square). unscale float32 [1] (absent: 1): the factor by which the
// gradients are still to be multiplied. For an infinite or undefined norm the factor is undefined
// (NaN), so that the damage shows.
#include "graph/program.h"
#include "ops/mixed_precision.h"

namespace fleet {

FLEET_OP(clip_scale) {
  def.inputs = {{"square"}, {"unscale", Slot::kOptional}};
  def.outputs = {{"scale"}};
  def.attributes = {{"clip_norm", 1.0}};
  def.add_trait<MixedPrecision>().on_custom_lists = false;
  def.infer = [](ShapeContext& context) { context.set_like(0, 0); };
}

}  // namespace fleet
