// adam (Kingma and Ba, 2015), in PyTorch's and Paddle's form, t = number of updates:
//   g += weight_decay * p                      (with decoupled instead: p -= lr * weight_decay * p)
//   m1 = beta1 m1 + (1 - beta1) g;  m2 = beta2 m2 + (1 - beta2) g^2
//   p -= lr / (1 - beta1^t) * m1 / (sqrt(m2 / (1 - beta2^t)) + epsilon)
#include "optim/adam.h"

namespace fleet {

FLEET_OP(adam) {
  def.inputs = {{"parameter"},
                {"gradient"},
                {"learning_rate"},
                {"moment1"},
                {"moment2"},
                {"step"},
                {"gradient_scale", Slot::kOptional}};
  def.outputs = {{"parameter"}, {"moment1"}, {"moment2"}};
  def.attributes = {{"beta1", 0.9},
                    {"beta2", 0.999},
                    {"epsilon", 1e-8},
                    {"weight_decay", 0.0},
                    {"decoupled", false}};
  def.inplace = {{0, 0}, {3, 1}, {4, 2}};
  def.infer = [](ShapeContext& context) {
    context.set_like(0, 0);
    context.set_like(1, 3);
    context.set_like(2, 4);
  };
}

Schema adam_schema() {
  Schema schema;
  schema.number("beta1", 0.9, 0, 1, "decay of the first moment")
      .number("beta2", 0.999, 0, 1, "decay of the second moment")
      .number("epsilon", 1e-8, 0, 1, "added to the root of the second moment");
  return schema;
}

void append_adam(UpdateContext& context, const Update& update, bool decoupled) {
  const VarId moment1 = context.state(update.parameter, "moment1");
  const VarId moment2 = context.state(update.parameter, "moment2");
  context.program().append(context.section(), "adam",
                           {update.parameter, update.gradient, context.learning_rate(), moment1,
                            moment2, context.step(), update.gradient_scale},
                           {update.parameter, moment1, moment2},
                           {{"beta1", context.settings().number("beta1")},
                            {"beta2", context.settings().number("beta2")},
                            {"epsilon", context.settings().number("epsilon")},
                            {"weight_decay", update.weight_decay},
                            {"decoupled", decoupled}});
}

FLEET_OPTIMIZER(adam) {
  def.help = "Adam; weight decay is part of the gradient";
  def.schema = adam_schema();
  def.append = [](UpdateContext& context, const Update& update) {
    append_adam(context, update, /*decoupled=*/false);
  };
}

}  // namespace fleet
