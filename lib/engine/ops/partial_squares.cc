// partial_squares: the sums of x^2 over each kSquaresPart elements of x, float64 [parts]. x is
// float32, float16 or bfloat16. Parts of tensors that follow each other have the bits that
// sum_of_squares adds up, so that processes with some of the tensors each compute the same sum.
#include "ops/partial_squares.h"

#include "graph/program.h"
#include "ops/mixed_precision.h"

namespace fleet {

FLEET_OP(partial_squares) {
  def.inputs = {{"x"}};
  def.outputs = {{"parts"}};
  def.add_trait<MixedPrecision>().on_custom_lists = false;
  def.infer = [](ShapeContext& context) {
    context.set(0, {parts_of_squares(context.shape(0).elements())}, DType::kFloat64);
  };
}

}  // namespace fleet
