#include "passes/gradients.h"

#include <algorithm>
#include <set>

namespace fleet {

std::vector<Gradient> find_gradients(const Program& program,
                                     const std::function<bool(const Var&)>& concerns) {
  const SectionId backward = program.find_section("backward");
  FLEET_CHECK(backward >= 0, "gradients before the backward pass");
  std::vector<int> writer(program.var_count(), -1);
  std::set<VarId> reduced;
  for (size_t i = 0; i < program.ops().size(); ++i) {
    const Op& op = program.ops()[i];
    if (op.type() == "all_reduce" || op.type() == "reduce") {
      reduced.insert(op.outputs.begin(), op.outputs.end());
    }
    if (op.section != backward) continue;
    for (VarId id : op.writes()) writer[id] = static_cast<int>(i);
  }
  std::vector<Gradient> gradients;
  for (VarId parameter : program.parameters()) {
    const VarId gradient = program.gradient(parameter);
    if (gradient == kNoVar || !program.var(parameter).trainable) continue;
    if (concerns && !concerns(program.var(parameter))) continue;
    FLEET_CHECK(!reduced.contains(gradient), "gradients are already reduced");
    if (writer[gradient] >= 0) gradients.push_back({parameter, gradient, writer[gradient]});
    writer[gradient] = -1;  // two parameters may share one gradient
  }
  std::stable_sort(gradients.begin(), gradients.end(), [](const Gradient& a, const Gradient& b) {
    return a.computed_by < b.computed_by;
  });
  return gradients;
}

void add_to_sum(Program& program, SectionId section, VarId gradient, VarId sum,
                std::vector<Op>* ops) {
  if (program.var(gradient).dtype != DType::kFloat32) {
    const VarId wide = program.temporary(program.var(gradient).name + "@float32");
    ops->push_back(program.make_op(section, "cast", {gradient}, {wide}));
    gradient = wide;
  }
  ops->push_back(program.make_op(section, "sum", {gradient, sum}, {sum}));
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
