// increment: x + 1 of an int64 counter, which is a state. If found_inf (int32 [1], optional) is not
// 0, the result is x, because the counted update is skipped.
#include "graph/program.h"

namespace fleet {

FLEET_OP(increment) {
  def.inputs = {{"x"}, {"found_inf", Slot::kOptional}};
  def.outputs = {{"x"}};
  def.inplace = {{0, 0}};
  def.infer = [](ShapeContext& context) { context.set_like(0, 0); };
}

}  // namespace fleet
