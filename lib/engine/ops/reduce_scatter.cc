// reduce_scatter: the sum (or minimum, maximum) of x over the ranks of a group, split along the
// first dimension; each rank gets the part of its index in the group: [ranks * n, ...] -> [n, ...].
#include "ops/collective.h"

namespace fleet {

FLEET_OP(reduce_scatter) {
  define_collective(def);
  def.inputs = {{"x"}};
  def.outputs = {{"y"}};
  def.attributes["op"] = std::string("sum");
  def.infer = [](ShapeContext& context) {
    check_reduction(context);
    Shape shape = context.shape(0);
    const int ranks = group_size(context);
    context.require(shape.rank() >= 1 && shape[0] % ranks == 0,
                    "the first dimension of " + shape.text() + " does not divide among " +
                        std::to_string(ranks) + " ranks");
    shape[0] /= ranks;
    context.set(0, shape, context.dtype(0));
  };
}

}  // namespace fleet
