// increment: x + 1 of an int64 counter, which is a state.
#include "graph/program.h"

namespace fleet {

FLEET_OP(increment) {
  def.inputs = {{"x"}};
  def.outputs = {{"x"}};
  def.inplace = {{0, 0}};
  def.infer = [](ShapeContext& context) { context.set_like(0, 0); };
}

}  // namespace fleet
