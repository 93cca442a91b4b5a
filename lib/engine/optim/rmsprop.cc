// rmsprop (Tieleman and Hinton, 2012), in PyTorch's form:
//   g += weight_decay * p;  s = alpha s + (1 - alpha) g^2
//   centered: m = alpha m + (1 - alpha) g, v = max(s - m^2, 0); else v = s
//   d = g / (sqrt(v) + epsilon)
//   momentum above 0: b = momentum * b + d, p -= lr * b; else p -= lr * d
// epsilon is outside the root, as in PyTorch; TensorFlow and Paddle have it inside. PyTorch does
// not bound s - m^2, which rounding can push below 0. There is one operation for each set of
// states: rmsprop has s, the others also m, b, or both. Each updates any number of parameters; see
// optim/update_op.h for g and for the inputs and outputs that all rules share.
#include "optim/optimizer.h"
#include "optim/update_op.h"

namespace fleet {
namespace {

void define_rmsprop(OpDef& def, const std::vector<std::string>& states) {
  define_update_op(def, /*needs_step=*/false, states);
  def.attributes = {{"alpha", 0.99}, {"epsilon", 1e-8}, {"momentum", 0.0}, {"weight_decay", 0.0}};
}

}  // namespace

FLEET_OP(rmsprop) { define_rmsprop(def, {"square"}); }
FLEET_OP(rmsprop_momentum) { define_rmsprop(def, {"square", "momentum"}); }
FLEET_OP(rmsprop_centered) { define_rmsprop(def, {"square", "mean"}); }
FLEET_OP(rmsprop_centered_momentum) { define_rmsprop(def, {"square", "mean", "momentum"}); }

FLEET_OPTIMIZER(rmsprop) {
  def.help = "steps divided by the root of the mean square of the gradient (RMSProp)";
  def.schema.number("alpha", 0.99, 0, 1, "fraction of the mean square that is kept")
      .number("epsilon", 1e-8, 0, 1, "added to the root of the mean square")
      .number("momentum", 0, 0, 1, "fraction of the momentum that is kept; 0: no momentum")
      .boolean("centered", false,
               "divide by the standard deviation of the gradient instead of its root mean square");
  def.append = [](UpdateContext& context, const Update& update) {
    const Settings& settings = context.settings();
    std::string type = "rmsprop";
    std::vector<VarId> states = {context.state(update.parameter, "square")};
    if (settings.boolean("centered")) {
      type += "_centered";
      states.push_back(context.state(update.parameter, "mean"));
    }
    if (settings.number("momentum") > 0) {
      type += "_momentum";
      states.push_back(context.state(update.parameter, "momentum"));
    }
    append_update_op(context, update, type, states);
  };
}

}  // namespace fleet
