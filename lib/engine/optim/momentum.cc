// momentum: d = g + weight_decay * p; v = momentum * v + d; p -= learning_rate * v, or with
// Nesterov's variant p -= learning_rate * (d + momentum * v). Like Paddle's Momentum and PyTorch's
// SGD (dampening 0): v does not contain the learning rate. Updates any number of parameters; see
// optim/update_op.h for g and for the inputs and outputs that all rules share.
#include "optim/optimizer.h"
#include "optim/update_op.h"

namespace fleet {

FLEET_OP(momentum) {
  define_update_op(def, /*needs_step=*/false, /*states=*/{"velocity"});
  def.attributes = {{"momentum", 0.9}, {"use_nesterov", false}, {"weight_decay", 0.0}};
}

FLEET_OPTIMIZER(momentum) {
  def.help = "gradient descent with momentum";
  def.schema.number("momentum", 0.9, 0, 1, "fraction of the velocity that is kept")
      .boolean("use_nesterov", false, "use Nesterov momentum");
  def.append = [](UpdateContext& context, const Update& update) {
    append_update_op(context, update, "momentum", {context.state(update.parameter, "momentum")});
  };
}

}  // namespace fleet
