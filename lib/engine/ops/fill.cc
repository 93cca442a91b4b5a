// fill: a constant of shape `shape`.
#include "graph/op.h"
#include "graph/program.h"
#include "ops/mixed_precision.h"

namespace fleet {

FLEET_OP(fill) {
  def.help = "a constant: every element of the shape is value, in the element type dtype";
  def.outputs = {{"out"}};
  // Operations on a constant may run in any type.
  def.add_trait<MixedPrecision>().precision = Precision::kGray;
  def.attributes = {
      {"shape", std::vector<int64_t>{1}}, {"value", 0.0}, {"dtype", std::string("float32")}};
  def.infer = [](ShapeContext& context) {
    context.set(0, to_shape(context.attributes().integers("shape")),
                to_dtype(context.attributes().text("dtype")));
  };
}

}  // namespace fleet
