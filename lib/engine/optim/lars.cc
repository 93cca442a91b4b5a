// lars: momentum with the rate of each parameter scaled by the ratio of its norm to its gradient's
// (You, Gitman and Ginsburg, 2017), in the form of Paddle's lars_momentum:
//   g += coupled_weight_decay * p
//   local = lr * lars_coeff * |p| / (|g| + weight_decay * |p| + epsilon)
//           if weight_decay, |p| and |g| are above 0, else lr
//   v = momentum * v + local * (g + weight_decay * p);  p -= v
// |x| is the Euclidean norm over the whole parameter. Updates any number of parameters; see
// optim/update_op.h for g and for the inputs and outputs that all rules share.
#include "optim/optimizer.h"
#include "optim/update_op.h"

namespace fleet {

FLEET_OP(lars) {
  define_update_op(def, /*needs_step=*/false, /*states=*/{"velocity"});
  def.add_trait<ParameterUpdate>().whole = true;
  def.attributes = {{"momentum", 0.9},
                    {"lars_coeff", 0.001},
                    {"weight_decay", 0.0005},
                    {"coupled_weight_decay", 0.0},
                    {"epsilon", 0.0}};
}

FLEET_OPTIMIZER(lars) {
  def.help = "momentum with a separate rate for each parameter (LARS)";
  def.schema.number("momentum", 0.9, 0, 1, "fraction of the velocity that is kept")
      .number("lars_coeff", 0.001, 0, 1e6, "trust coefficient")
      .number("epsilon", 0, 0, 1, "added to the norms")
      .number("coupled_weight_decay", 0, 0, 1e6, "decay that is part of the gradient");
  def.weight_decay = 0.0005;
  def.append = [](UpdateContext& context, const Update& update) {
    append_update_op(context, update, "lars", {context.state(update.parameter, "momentum")});
  };
}

}  // namespace fleet
