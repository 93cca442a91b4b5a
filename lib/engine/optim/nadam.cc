// nadam (Dozat, 2016, "Incorporating Nesterov Momentum into Adam"), in PyTorch's form, t = number
// of updates:
//   g += weight_decay * p                      (with decoupled instead: p -= lr * weight_decay * p)
//   m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2
//   u_t = beta1 (1 - 0.96^(t momentum_decay) / 2);  U_t = u_1 u_2 ... u_t
//   p -= lr ((1 - u_t) / (1 - U_t) g + u_{t+1} / (1 - U_{t+1}) m) / (sqrt(v / (1 - beta2^t)) +
//   epsilon)
// Updates any number of parameters; see optim/update_op.h for g and for the inputs and outputs that
// all rules share. step: int64 [1], t.
#include "optim/optimizer.h"
#include "optim/update_op.h"

namespace fleet {

FLEET_OP(nadam) {
  define_update_op(def, /*needs_step=*/true, /*states=*/{"moment1", "moment2"});
  def.attributes = {{"beta1", 0.9},           {"beta2", 0.999},      {"epsilon", 1e-8},
                    {"momentum_decay", 4e-3}, {"weight_decay", 0.0}, {"decoupled", false}};
}

FLEET_OPTIMIZER(nadam) {
  def.help = "Adam with Nesterov momentum that grows at the start (NAdam)";
  def.schema.number("beta1", 0.9, 1e-3, kMaxDecay, "decay of the first moment")
      .number("beta2", 0.999, 0, kMaxDecay, "decay of the second moment")
      .number("epsilon", 1e-8, 0, 1, "added to the root of the second moment")
      .number("momentum_decay", 4e-3, 1e-6, 1, "how fast the momentum grows to beta1")
      .boolean("decoupled", false, "weight decay apart from the gradient, as in adamw");
  def.append = [](UpdateContext& context, const Update& update) {
    append_update_op(
        context, update, "nadam",
        {context.state(update.parameter, "moment1"), context.state(update.parameter, "moment2")});
  };
}

}  // namespace fleet
