// adamw: adam with weight decay separate from the gradient (Loshchilov and Hutter, 2019).
#include "optim/adam.h"

namespace fleet {

FLEET_OPTIMIZER(adamw) {
  def.help = "Adam with decoupled weight decay";
  def.schema = adam_schema();
  def.weight_decay = 0.01;
  def.append = [](UpdateContext& context, const Update& update) {
    append_adam(context, update, /*decoupled=*/true);
  };
}

}  // namespace fleet
