// adagrad (Duchi, Hazan and Singer, 2011), in PyTorch's form, t = number of updates:
//   g += weight_decay * p;  s = s + g^2, starting at initial_accumulator_value
//   p -= lr / (1 + (t - 1) * lr_decay) * g / (sqrt(s) + epsilon)
// Updates any number of parameters; see optim/update_op.h for g and for the inputs and outputs that
// all rules share. step: int64 [1], t.
#include "optim/optimizer.h"
#include "optim/row_update.h"
#include "optim/update_op.h"

namespace fleet {

FLEET_OP(adagrad) {
  define_update_op(def, /*needs_step=*/true, /*states=*/{"sum"});
  def.attributes = {{"epsilon", 1e-10}, {"lr_decay", 0.0}, {"weight_decay", 0.0}};
}

FLEET_OP(adagrad_rows) {
  define_row_update_op(def, /*needs_step=*/true, /*states=*/{"sum"});
  def.attributes = {{"epsilon", 1e-10}, {"lr_decay", 0.0}, {"weight_decay", 0.0}};
}

FLEET_OPTIMIZER(adagrad) {
  def.help = "steps divided by the root of the sum of all squared gradients so far (Adagrad)";
  def.schema.number("epsilon", 1e-10, 0, 1, "added to the root of the sum")
      .number("lr_decay", 0, 0, 1e6,
              "the rate is divided by 1 + lr_decay x number of earlier updates")
      .number("initial_accumulator_value", 0, 0, 1e30, "initial value of the sum");
  def.append = [](UpdateContext& context, const Update& update) {
    const Var& parameter = context.program().var(update.parameter);
    const double initial = context.settings().number("initial_accumulator_value");
    const VarId sum = context.program().state(parameter.name + ".sum", parameter.shape,
                                              {Init::kConstant, initial}, parameter.dtype);
    append_update_op(context, update, "adagrad", {sum});
  };
}

}  // namespace fleet
