// increment: x + 1 of an int64 counter, which is a state; found_inf (int32 [1], where given): x
// where it is not 0, since the update that is counted is skipped then.
#include "graph/program.h"

namespace fleet {

FLEET_OP(increment) {
  def.inputs = {{"x"}, {"found_inf", Slot::kOptional}};
  def.outputs = {{"x"}};
  def.inplace = {{0, 0}};
  def.infer = [](ShapeContext& context) { context.set_like(0, 0); };
}

}  // namespace fleet
