// lion (Chen et al., 2023, "Symbolic Discovery of Optimization Algorithms"):
//   d = sign(beta1 m + (1 - beta1) g), with sign(0) = sign(NaN) = 0
//   p -= lr * (d + weight_decay * p);  m = beta2 m + (1 - beta2) g
// Every element moves by the same amount: use a rate 3 to 10 times smaller than adamw's, and a
// weight_decay larger by the same factor. Updates any number of parameters; see optim/update_op.h
// for g and for the inputs and outputs that all rules share.
#include "optim/optimizer.h"
#include "optim/update_op.h"

namespace fleet {

FLEET_OP(lion) {
  define_update_op(def, /*needs_step=*/false, /*states=*/{"momentum"});
  def.attributes = {{"beta1", 0.9}, {"beta2", 0.99}, {"weight_decay", 0.0}};
}

FLEET_OPTIMIZER(lion) {
  def.help = "steps along the sign of the momentum (Lion); decoupled weight decay";
  def.schema.number("beta1", 0.9, 0, 1, "weight of the momentum in a step")
      .number("beta2", 0.99, 0, 1, "decay of the momentum");
  def.append = [](UpdateContext& context, const Update& update) {
    append_update_op(context, update, "lion", {context.state(update.parameter, "momentum")});
  };
}

}  // namespace fleet
