// all_gather: concatenates x of all ranks of a group, in the group's order, along the first
// dimension: [n, ...] -> [ranks * n, ...].
#include "ops/collective.h"

namespace fleet {

FLEET_OP(all_gather) {
  define_collective(def);
  def.inputs = {{"x"}};
  def.outputs = {{"y"}};
  def.infer = [](ShapeContext& context) {
    Shape shape = context.shape(0);
    context.require(shape.rank() >= 1, "a scalar has no rows to gather");
    shape[0] *= group_size(context);
    context.set(0, shape, context.dtype(0));
  };
}

}  // namespace fleet
