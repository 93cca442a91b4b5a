// sgd: p -= learning_rate * (g + weight_decay * p).
#include "optim/optimizer.h"

namespace fleet {

FLEET_OP(sgd) {
  def.inputs = {
      {"parameter"}, {"gradient"}, {"learning_rate"}, {"gradient_scale", Slot::kOptional}};
  def.outputs = {{"parameter"}};
  def.attributes = {{"weight_decay", 0.0}};
  def.inplace = {{0, 0}};
  def.infer = [](ShapeContext& context) { context.set_like(0, 0); };
}

FLEET_OPTIMIZER(sgd) {
  def.help = "stochastic gradient descent";
  def.append = [](UpdateContext& context, const Update& update) {
    context.program().append(
        context.section(), "sgd",
        {update.parameter, update.gradient, context.learning_rate(), update.gradient_scale},
        {update.parameter}, {{"weight_decay", update.weight_decay}});
  };
}

}  // namespace fleet
