// lamb: Adam with the step of each parameter scaled to the parameter's own norm (You et al., 2020),
// in Paddle's form, t = number of updates:
//   g += coupled_weight_decay * p
//   m1 = beta1 m1 + (1 - beta1) g;  m2 = beta2 m2 + (1 - beta2) g^2
//   r = m1 / (1 - beta1^t) / (sqrt(m2 / (1 - beta2^t)) + epsilon) + weight_decay * p
//   p -= lr * trust * r, trust = |p| / |r| if both are above 0, else 1
// |x| is the Euclidean norm over the whole parameter. Updates any number of parameters; see
// optim/update_op.h for g and for the inputs and outputs that all rules share. step: int64 [1], t.
#include <algorithm>

#include "optim/optimizer.h"
#include "optim/update_op.h"

namespace fleet {

FLEET_OP(lamb) {
  define_update_op(def, /*needs_step=*/true, /*states=*/{"moment1", "moment2"});
  def.add_trait<ParameterUpdate>().whole = true;
  def.attributes = {{"beta1", 0.9},
                    {"beta2", 0.999},
                    {"epsilon", 1e-6},
                    {"weight_decay", 0.01},
                    {"coupled_weight_decay", 0.0}};
}

FLEET_OPTIMIZER(lamb) {
  def.help = "Adam with steps scaled to the norm of each parameter (LAMB)";
  def.schema.number("beta1", 0.9, 0, kMaxDecay, "decay of the first moment")
      .number("beta2", 0.999, 0, kMaxDecay, "decay of the second moment")
      .number("epsilon", 1e-6, 1e-30, 1, "added to the root of the second moment")
      .number("coupled_weight_decay", 0, 0, 1e6, "decay that is part of the gradient")
      .texts("exclude_suffixes", {},
             "parameters whose names end with one of these texts do not decay");
  def.weight_decay = 0.01;
  def.append = [](UpdateContext& context, const Update& update) {
    const std::string& name = context.program().var(update.parameter).name;
    const std::vector<std::string> suffixes = context.settings().texts("exclude_suffixes");
    const bool excluded = std::any_of(suffixes.begin(), suffixes.end(),
                                      [&](const auto& suffix) { return name.ends_with(suffix); });
    const VarId moment1 = context.state(update.parameter, "moment1");
    const VarId moment2 = context.state(update.parameter, "moment2");
    append_update_op(context, update, "lamb", {moment1, moment2},
                     {{"weight_decay", excluded ? 0.0 : update.weight_decay}});
  };
}

}  // namespace fleet
