// The common part of the optimizers' update rules (optim/<rule>_rule.h). A rule changes one
// element; the kernels of every backend run it.
//
// A rule is made from an operation's attributes, and from the address of the number of updates if
// it depends on that, and that of its own input if the operation declares one behind the step.
// at(rate, scale) computes the constants of a step, in Real: double on a CPU,
// float on a GPU. Their update(parameter, gradient, states...) changes one element. kStates: the
// number of the operation's states.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <type_traits>

#include "base/cpu.h"
#include "graph/op.h"
#include "optim/update_op.h"
#include "tensor/layout.h"

namespace fleet {

// The rule of a kernel. Context: KernelContext.
template <typename Rule, typename Context>
Rule rule_of(const Context& context) {
  if constexpr (std::is_constructible_v<Rule, const Attributes&>) {
    return Rule(context.attributes());
  } else {
    const auto* step = context.inputs[kUpdateStep].template as<const int64_t>();
    if constexpr (std::is_constructible_v<Rule, const Attributes&, const int64_t*>) {
      return Rule(context.attributes(), step);
    } else {
      const auto* own = context.inputs[kUpdateOwnInput].template as<const float>();
      return Rule(context.attributes(), step, own);
    }
  }
}

// Gives every group of an update one layout: the first that a member has. Query: LayoutQuery.
template <typename Query>
void update_layouts(Query& query) {
  const UpdateGroups groups(*query.op().def, query.op().inputs.size());
  for (int k = 0; k < groups.count; ++k) {
    std::optional<Layout> common;
    for (int i = 0; i < groups.inputs_each && !common; ++i) {
      common = query.input(groups.parameter(k) + i);
    }
    if (!common || common->is_opaque()) continue;
    for (int i = 0; i < groups.inputs_each; ++i) query.need(groups.parameter(k) + i, *common);
    for (int i = 0; i < groups.outputs_each; ++i) {
      if (query.has_output(groups.output(k) + i)) query.give(groups.output(k) + i, *common);
    }
  }
}

// The decay of a moving average.
template <typename Real>
struct Decay {
  Real beta, rest, log_beta;  // rest: 1 - beta, rounded once
  explicit Decay(double value)
      : beta(static_cast<Real>(value)),
        rest(static_cast<Real>(1 - value)),
        log_beta(static_cast<Real>(std::log(value))) {}
  // 1 - beta^t; in float as -expm1(t log(beta)), which is exact if beta^t is close to 1.
  FLEET_INLINE Real correction(Real t) const {
    if constexpr (std::is_same_v<Real, double>) {
      return 1 - std::pow(beta, t);
    } else {
      return -std::expm1(t * log_beta);
    }
  }
};

}  // namespace fleet
