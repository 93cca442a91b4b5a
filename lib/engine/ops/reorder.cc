// reorder: the same values in another layout. Only the Plan inserts it, where a kernel needs an
// input in a layout that differs from the current one.
#include "graph/program.h"
#include "ops/mixed_precision.h"

namespace fleet {

FLEET_OP(reorder) {
  def.inputs = {{"x"}};
  def.outputs = {{"y"}};
  def.add_trait<MixedPrecision>().precision = Precision::kGray;
  def.add_trait<MixedPrecision>().on_custom_lists = false;
  def.infer = [](ShapeContext& context) { context.set_like(0, 0); };
}

}  // namespace fleet
