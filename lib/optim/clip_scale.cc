// clip_scale: the factor clip_norm / max(norm, clip_norm) that bounds a norm, given its square; of
// an infinite or undefined norm it is undefined (NaN), so that the damage shows.
#include "graph/program.h"

namespace fleet {

FLEET_OP(clip_scale) {
  def.inputs = {{"square"}};
  def.outputs = {{"scale"}};
  def.attributes = {{"clip_norm", 1.0}};
  def.infer = [](ShapeContext& context) { context.set_like(0, 0); };
}

}  // namespace fleet
