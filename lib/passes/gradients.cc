#include "passes/gradients.h"

#include <algorithm>

namespace fleet {
namespace {

bool reduces_gradients(const Program& program, const Op& op) {
  if (op.type() != "all_reduce" && op.type() != "reduce") return false;
  return std::any_of(op.inputs.begin(), op.inputs.end(), [&](VarId id) {
    const VarId of = program.var(id).gradient_of;
    return of != kNoVar && program.gradient(of) == id;
  });
}

}  // namespace

std::vector<Gradient> find_gradients(const Program& program) {
  const SectionId backward = program.find_section("backward");
  FLEET_CHECK(backward >= 0, "gradients before the backward pass");
  std::vector<int> writer(program.var_count(), -1);
  for (size_t i = 0; i < program.ops().size(); ++i) {
    const Op& op = program.ops()[i];
    FLEET_CHECK(!reduces_gradients(program, op), "gradients are reduced already");
    if (op.section != backward) continue;
    for (VarId id : op.outputs) {
      if (id != kNoVar) writer[id] = static_cast<int>(i);
    }
  }
  std::vector<Gradient> gradients;
  for (VarId parameter : program.parameters()) {
    const VarId gradient = program.gradient(parameter);
    if (gradient == kNoVar || !program.var(parameter).trainable) continue;
    if (writer[gradient] >= 0) gradients.push_back({parameter, gradient, writer[gradient]});
    writer[gradient] = -1;  // two parameters may share one gradient
  }
  std::stable_sort(gradients.begin(), gradients.end(), [](const Gradient& a, const Gradient& b) {
    return a.computed_by < b.computed_by;
  });
  return gradients;
}

std::vector<GradientSize> sizes_of(const Program& program, const std::vector<Gradient>& gradients) {
  std::vector<GradientSize> sizes;
  for (const Gradient& gradient : gradients) {
    const Var& var = program.var(gradient.var);
    sizes.push_back({.parameter = program.var(var.gradient_of).name,
                     .bytes = var.shape.elements() * size_of(var.dtype),
                     .dtype = var.dtype});
  }
  return sizes;
}

}  // namespace fleet
