// sgd: p -= learning_rate * (g + weight_decay * p), of any number of parameters; see
// optim/update_op.h for g and for the inputs and outputs that all rules share.
#include "optim/optimizer.h"
#include "optim/row_update.h"
#include "optim/update_op.h"

namespace fleet {

FLEET_OP(sgd) {
  define_update_op(def, /*needs_step=*/false, /*states=*/{});
  def.attributes = {{"weight_decay", 0.0}};
}

FLEET_OP(sgd_rows) {
  define_row_update_op(def, /*needs_step=*/false, /*states=*/{});
  def.attributes = {{"weight_decay", 0.0}};
}

FLEET_OPTIMIZER(sgd) {
  def.help = "stochastic gradient descent";
  def.append = [](UpdateContext& context, const Update& update) {
    append_update_op(context, update, "sgd", {});
  };
}

}  // namespace fleet
