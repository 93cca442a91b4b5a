// adam (Kingma and Ba, 2015), in PyTorch's and Paddle's form, t = number of updates:
//   g += weight_decay * p                      (with decoupled instead: p -= lr * weight_decay * p)
//   m1 = beta1 m1 + (1 - beta1) g;  m2 = beta2 m2 + (1 - beta2) g^2
//   p -= lr / (1 - beta1^t) * m1 / (sqrt(m2 / (1 - beta2^t)) + epsilon)
// amsgrad (Reddi, Kale and Kumar, 2018) divides by the root of the largest m2 so far, a third
// state. adamw is adam with decoupled weight decay (Loshchilov and Hutter, 2019). Updates any
// number of parameters; see optim/update_op.h for g and for the inputs and outputs that all rules
// share. step: int64 [1], t.
#include "optim/update_op.h"

namespace fleet {

namespace {

void define(OpDef& def, const std::vector<std::string>& states) {
  define_update_op(def, /*needs_step=*/true, states);
  def.attributes = {{"beta1", 0.9},
                    {"beta2", 0.999},
                    {"epsilon", 1e-8},
                    {"weight_decay", 0.0},
                    {"decoupled", false}};
}

Schema adam_schema() {
  return Schema()
      .number("beta1", 0.9, 0, kMaxDecay, "decay of the first moment")
      .number("beta2", 0.999, 0, kMaxDecay, "decay of the second moment")
      .number("epsilon", 1e-8, 0, 1, "added to the root of the second moment")
      .boolean("amsgrad", false, "divide by the root of the largest second moment so far");
}

// decoupled: weight decay is separate from the gradient (adamw).
void append_adam(UpdateContext& context, const Update& update, bool decoupled) {
  const bool amsgrad = context.settings().boolean("amsgrad");
  std::vector<VarId> states = {context.state(update.parameter, "moment1"),
                               context.state(update.parameter, "moment2")};
  if (amsgrad) states.push_back(context.state(update.parameter, "max_moment2"));
  append_update_op(context, update, amsgrad ? "adam_amsgrad" : "adam", states,
                   {{"decoupled", decoupled}});
}

}  // namespace

FLEET_OP(adam) { define(def, {"moment1", "moment2"}); }
FLEET_OP(adam_amsgrad) { define(def, {"moment1", "moment2", "max_moment2"}); }

FLEET_OPTIMIZER(adam) {
  def.help = "Adam; weight decay is part of the gradient";
  def.schema = adam_schema();
  def.append = [](UpdateContext& context, const Update& update) {
    append_adam(context, update, /*decoupled=*/false);
  };
}

FLEET_OPTIMIZER(adamw) {
  def.help = "Adam with decoupled weight decay";
  def.schema = adam_schema();
  def.weight_decay = 0.01;
  def.append = [](UpdateContext& context, const Update& update) {
    append_adam(context, update, /*decoupled=*/true);
  };
}

}  // namespace fleet
