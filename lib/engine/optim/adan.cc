// adan (Xie et al., 2022, "Adan: Adaptive Nesterov Momentum Algorithm for Faster Optimizing Deep
// Models"), in the form of its authors' code, t = number of updates, h the previous update's g:
//   d = g - h, with d = 0 for t = 1
//   m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) d
//   n = beta3 n + (1 - beta3) (g + beta2 d)^2
//   r = (m / (1 - beta1^t) + beta2 v / (1 - beta2^t)) / (sqrt(n / (1 - beta3^t)) + epsilon)
//   p = (p - lr * r) / (1 + lr * weight_decay)
//   with no_prox: p = p * (1 - lr * weight_decay) - lr * r
// Updates any number of parameters; see optim/update_op.h for g and for the inputs and outputs that
// all rules share. step: int64 [1], t.
#include "optim/optimizer.h"
#include "optim/update_op.h"

namespace fleet {

FLEET_OP(adan) {
  define_update_op(def, /*needs_step=*/true,
                   /*states=*/{"moment", "difference", "square", "previous_gradient"});
  def.attributes = {{"beta1", 0.98},   {"beta2", 0.92},       {"beta3", 0.99},
                    {"epsilon", 1e-8}, {"weight_decay", 0.0}, {"no_prox", false}};
}

FLEET_OPTIMIZER(adan) {
  def.help = "Adam with Nesterov momentum, from differences of gradients (Adan)";
  def.schema.number("beta1", 0.98, 0, kMaxDecay, "decay of the mean of gradients")
      .number("beta2", 0.92, 0, kMaxDecay, "decay of the mean of differences between gradients")
      .number("beta3", 0.99, 0, kMaxDecay, "decay of the mean square")
      .number("epsilon", 1e-8, 0, 1, "added to the root of the mean square")
      .boolean("no_prox", false, "decay the weights before the step, as adamw does");
  def.append = [](UpdateContext& context, const Update& update) {
    std::vector<VarId> states;
    for (const char* name : {"moment", "difference", "square", "previous_gradient"}) {
      states.push_back(context.state(update.parameter, name));
    }
    append_update_op(context, update, "adan", states);
  };
}

}  // namespace fleet
