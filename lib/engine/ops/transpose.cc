// transpose: axis d of y is axis perm[d] of x.
#include "graph/program.h"
#include "ops/mixed_precision.h"
#include "ops/permutation.h"

namespace fleet {
namespace {

std::vector<int64_t> inverse(const std::vector<int64_t>& perm) {
  std::vector<int64_t> back(perm.size());
  for (size_t d = 0; d < perm.size(); ++d) back[perm[d]] = static_cast<int64_t>(d);
  return back;
}

}  // namespace

FLEET_OP(transpose) {
  def.help =
      "x with its dimensions in another order: dimension d of the result is dimension perm[d] of x";
  def.inputs = {{"x"}};
  def.outputs = {{"y"}};
  def.attributes = {{"perm", std::vector<int64_t>()}};
  def.add_trait<MixedPrecision>().precision = Precision::kGray;
  def.add_trait<Permutation>();
  def.infer = [](ShapeContext& context) {
    const Shape& x = context.shape(0);
    const std::vector<int64_t>& perm = context.attributes().integers("perm");
    std::vector<bool> seen(x.rank());
    bool fits = static_cast<int>(perm.size()) == x.rank();
    Shape shape = x;
    for (int d = 0; fits && d < x.rank(); ++d) {
      fits = perm[d] >= 0 && perm[d] < x.rank() && !seen[perm[d]];
      if (!fits) break;
      seen[perm[d]] = true;
      shape[d] = x[static_cast<int>(perm[d])];
    }
    context.require(fits, "perm does not name each axis of " + x.text() + " once");
    context.set(0, shape, context.dtype(0));
  };
  def.gradient = [](GradientContext& context) {
    context.append("transpose", {context.output_gradient(0)}, {context.input_gradient(0)},
                   {{"perm", inverse(context.attributes().integers("perm"))}});
  };
}

}  // namespace fleet
