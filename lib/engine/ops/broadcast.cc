#include "ops/broadcast.h"

#include "graph/program.h"
#include "ops/mixed_precision.h"

namespace fleet {

std::optional<Broadcast> broadcast_of(const Shape& x, const Shape& y, int64_t axis) {
  int64_t start = axis == -1 ? x.rank() - y.rank() : axis;
  if (start < 0 || start + y.rank() > x.rank()) return std::nullopt;
  int first = 0, last = y.rank();
  while (last > first && y[last - 1] == 1 && x[start + last - 1] != 1) --last;
  while (first < last && y[first] == 1 && x[start + first] != 1) ++first;
  Broadcast result;
  for (int d = 0; d < x.rank(); ++d) {
    const int64_t own = d - start;  // y's axis
    if (own < first) {
      result.outer *= x[d];
    } else if (own >= last) {
      result.inner *= x[d];
    } else {
      if (y[own] != x[d]) return std::nullopt;
      result.middle *= x[d];
    }
  }
  if (result.middle == 1) {  // y is one element
    result.inner *= result.outer;
    result.outer = 1;
  }
  return result;
}

void define_broadcasting(OpDef& def) {
  def.inputs = {{"x"}, {"y"}};
  def.outputs = {{"out"}};
  def.attributes = {{"axis", int64_t{-1}}};
  def.add_trait<MixedPrecision>().precision = Precision::kGray;
  def.inplace = {{0, 0}};
  def.infer = [](ShapeContext& context) {
    const Shape &x = context.shape(0), &y = context.shape(1);
    context.require(broadcast_of(x, y, context.attributes().integer("axis")).has_value(),
                    "cannot broadcast " + y.text() + " over " + x.text());
    context.set_like(0, 0);
  };
}

}  // namespace fleet
