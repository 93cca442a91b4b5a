// dgc_select: what a rank sends of its gradients in Deep Gradient Compression (Lin et al., 2018:
// momentum correction and momentum factor masking, in the form of Paddle's dgc operator). For each
// parameter p of n elements, with its local gradient g and its states u (velocity) and v (what was
// not sent so far):
//   d = gradient_factor * scale * g + weight_decay * p    scale float32 [1]; absent: 1
//   u = momentum * u + d;            v = v + u
//   u = momentum * (u + d);          v = v + u + d        with use_nesterov
// The k elements of v with the largest absolute values are sent, exactly k: of equal ones those of
// the lowest index, and NaN counts as the largest of all. Where they lie, u and v become 0.
//
// Inputs: a group a parameter: parameter, gradient, u, v float32 [n], scale. Outputs: encoded int32
// [2 * sum of counts], a stretch a parameter: k indices, ascending, then the k values as they are
// in memory; then a group a parameter: u and v, the same variables. An index is an element's place
// in the parameter's memory: ranks agree on its layout (Plan::agreements()).
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
                "dgc_select: inputs are no whole groups");
    constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
    int64_t total = 0;
    for (int i = 0; i < groups.count; ++i) {
      const int parameter = DgcGroups::parameter(i);
      const Shape& shape = context.shape(parameter);
      for (int member = 0; member < DgcGroups::kTensors; ++member) {
        FLEET_CHECK(context.shape(parameter + member) == shape &&
                        context.dtype(parameter + member) == DType::kFloat32,
                    "dgc_select: gradients and states are float32, as large as their parameter");
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
