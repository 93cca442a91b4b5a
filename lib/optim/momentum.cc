// momentum: d = g + weight_decay * p; v = momentum * v + d; p -= learning_rate * v, or with
// Nesterov's variant p -= learning_rate * (d + momentum * v). As Paddle's Momentum and PyTorch's
// SGD (dampening 0): the learning rate is not within v.
#include "optim/optimizer.h"

namespace fleet {

FLEET_OP(momentum) {
  def.inputs = {{"parameter"},
                {"gradient"},
                {"learning_rate"},
                {"velocity"},
                {"gradient_scale", Slot::kOptional}};
  def.outputs = {{"parameter"}, {"velocity"}};
  def.attributes = {{"momentum", 0.9}, {"use_nesterov", false}, {"weight_decay", 0.0}};
  def.inplace = {{0, 0}, {3, 1}};
  def.infer = [](ShapeContext& context) {
    context.set_like(0, 0);
    context.set_like(1, 3);
  };
}

FLEET_OPTIMIZER(momentum) {
  def.help = "gradient descent with momentum";
  def.schema.number("momentum", 0.9, 0, 1, "part of the velocity that is kept")
      .boolean("use_nesterov", false, "Nesterov's variant");
  def.append = [](UpdateContext& context, const Update& update) {
    const VarId velocity = context.state(update.parameter, "momentum");
    context.program().append(context.section(), "momentum",
                             {update.parameter, update.gradient, context.learning_rate(), velocity,
                              update.gradient_scale},
                             {update.parameter, velocity},
                             {{"momentum", context.settings().number("momentum")},
                              {"use_nesterov", context.settings().boolean("use_nesterov")},
                              {"weight_decay", update.weight_decay}});
  };
}

}  // namespace fleet
