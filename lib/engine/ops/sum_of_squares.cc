// sum_of_squares: the sum of x^2 over all elements of all inputs, float32 of shape [1]. The inputs
// are float32, float16 or bfloat16, mixed.
#include "graph/program.h"

namespace fleet {

FLEET_OP(sum_of_squares) {
  def.inputs = {{"x", Slot::kVariadic}};
  def.outputs = {{"sum"}};
  def.infer = [](ShapeContext& context) { context.set(0, {1}, DType::kFloat32); };
}

}  // namespace fleet
