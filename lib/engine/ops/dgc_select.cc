// dgc_select: selects the gradient elements that a rank sends in Deep Gradient Compression (Lin et
// al., 2018: momentum correction and momentum factor masking, in the form of Paddle's dgc
// operator). For each parameter p of n elements, with its local gradient g and its states u
// (velocity) and v (residual: not sent so far):
//   d = gradient_factor * scale * g + weight_decay * p    scale float32 [1]; absent: 1
//   u = momentum * u + d;            v = v + u
//   u = momentum * (u + d);          v = v + u + d        with use_nesterov
// Exactly the k elements of v with the largest absolute values are sent. Among equal ones the
// lowest index wins, and NaN counts as the largest. At their positions, u and v become 0.
//
// Inputs: per parameter a group of parameter, gradient, u, v float32 [n], scale. Outputs: encoded
// int32 [2 * sum of counts], with a section per parameter: k indices, ascending, then the bit
// patterns of the k values; then per parameter a group of u and v, the same variables. An index is
// an element's position in the parameter's memory: ranks agree on its layout (Plan::agreements()).
#include <limits>

#include "ops/dgc.h"

namespace fleet {

FLEET_OP(dgc_select) {
  def.inputs = {{"tensors", Slot::kVariadic}};
  def.outputs = {{"encoded"}, {"tensors", Slot::kVariadic}};
  def.attributes = {{"counts", std::vector<int64_t>()},  // k of each parameter
                    {"weight_decays", std::vector<double>()},
                    {"momentum", 0.9},
                    {"use_nesterov", false},
                    {"gradient_factor", 1.0}};
  def.infer = [](ShapeContext& context) {
    const auto& counts = context.attributes().integers("counts");
    const DgcGroups groups(context.input_count());
    FLEET_CHECK(groups.count > 0 && groups.count * DgcGroups::kInputs == context.input_count() &&
                    static_cast<size_t>(groups.count) == counts.size() &&
                    counts.size() == context.attributes().numbers("weight_decays").size(),
                "dgc_select: the inputs do not form complete groups");
    constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
    int64_t total = 0;
    for (int i = 0; i < groups.count; ++i) {
      const int parameter = DgcGroups::parameter(i);
      const Shape& shape = context.shape(parameter);
      for (int member = 0; member < DgcGroups::kTensors; ++member) {
        FLEET_CHECK(
            context.shape(parameter + member) == shape &&
                context.dtype(parameter + member) == DType::kFloat32,
            "dgc_select: gradients and states must be float32 and have their parameter's shape");
      }
      FLEET_CHECK(shape.elements() <= kMost, "dgc_select: an index has 32 bits");
      FLEET_CHECK(counts[i] >= 1 && counts[i] <= shape.elements(),
                  "dgc_select: " + std::to_string(counts[i]) + " elements of " + shape.text());
      total += counts[i];
      context.set_like(DgcGroups::velocity_out(i), DgcGroups::velocity(i));
      context.set_like(DgcGroups::residual_out(i), DgcGroups::residual(i));
    }
    context.set(0, {2 * total}, DType::kInt32);
  };
}

}  // namespace fleet
