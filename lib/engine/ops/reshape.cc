// reshape: the same elements in row-major order with another shape. In `shape`, 0 keeps x's
// dimension at that position, and one -1 takes the remaining elements.
#include <algorithm>

#include "graph/op.h"
#include "graph/program.h"
#include "ops/mixed_precision.h"

namespace fleet {
namespace {

void infer_reshape(ShapeContext& context) {
  const Shape& x = context.shape(0);
  const std::vector<int64_t>& wanted = context.attributes().integers("shape");
  const std::string what = "cannot reshape " + x.text() + " to " + to_shape(wanted).text();
  Shape shape = to_shape(wanted);
  int64_t known = 1;
  int rest = -1;
  for (int d = 0; d < shape.rank(); ++d) {
    if (shape[d] == 0 && d < x.rank()) shape[d] = x[d];
    context.require(shape[d] >= -1 && !(shape[d] == -1 && rest >= 0), what);
    context.require(shape[d] <= std::max<int64_t>(x.elements(), 1), what);
    if (shape[d] == -1) {
      rest = d;
    } else {
      known *= shape[d];
    }
  }
  if (rest >= 0) {
    context.require(known > 0 && x.elements() % known == 0, what);
    shape[rest] = x.elements() / known;
  }
  context.require(shape.elements() == x.elements(), what);
  context.set(0, shape, context.dtype(0));
}

}  // namespace

FLEET_OP(reshape) {
  def.help =
      "the same elements with another shape; 0 keeps the dimension of x at that position, and one "
      "-1 takes the rest";
  def.inputs = {{"x"}};
  def.outputs = {{"y"}};
  def.attributes = {{"shape", std::vector<int64_t>()}};
  def.add_trait<MixedPrecision>().precision = Precision::kGray;
  def.inplace = {{0, 0}};
  def.infer = infer_reshape;
  def.gradient = [](GradientContext& context) {
    context.append("reshape", {context.output_gradient(0)}, {context.input_gradient(0)},
                   {{"shape", to_attribute(context.input_var(0).shape)}});
  };
}

}  // namespace fleet
