// Common parts of the operations that update parameters (sgd, momentum, adam).
//
// Inputs: learning_rate float32 [1]; gradient_scale float32 [1], optional; found_inf int32 [1],
// optional; step int64 [1], the number of updates including this one, optional for rules that do
// not depend on it; then one group per parameter: parameter, gradient, states. Outputs: one group
// per parameter: parameter and states, the same variables; copy.
//
// g is the gradient times gradient_scale (from clipping and loss scaling; absent: 1), computed in
// float32. If found_inf is not 0, parameters and states do not change; copies are written all the
// same (the Plan may have put a reorder behind them). Parameters and states are updated in place.
// The gradients of one operation have one type: float32, float16 or bfloat16. Parameters and states
// have one type, too: float32, or bfloat16 without copies. In bfloat16 the rule computes in
// float32, and its results are rounded stochastically (optim/stochastic_rounding.h): the operation
// then has a step and, in its annotation kRoundingKeys, the rounding_key() of each parameter. The
// copy (kNoVar: none; either all groups have one or none) is a state of the gradients' or another
// low type that receives the new parameter, rounded.
// The members of a group share one layout, except that the Plan may reorder the copy behind it.
#pragma once

#include "optim/optimizer.h"

namespace fleet {

// Positions among the inputs.
inline constexpr int kUpdateLearningRate = 0, kUpdateGradientScale = 1, kUpdateFoundInf = 2;
inline constexpr int kUpdateStep = 3;
// An input that a rule may add before the groups: float32 [1].
inline constexpr int kUpdateOwnInput = 4;

// The annotation of updates of bfloat16 parameters: a list of integers, one per group.
inline constexpr char kRoundingKeys[] = "@rounding_keys";

// The annotation of an operation that computes the step of a parameter from its gradient, before
// the update: the parameter's name. The states among its outputs belong to the parameter, and may
// have any shape. Such a rule ends with an update that applies the step, "sgd".
inline constexpr char kUpdatedParameter[] = "@parameter";

// The trait of update operations: the variadic inputs and outputs come in groups, one per
// parameter, with these members in this order. Operations that are equal in everything else can be
// merged into one (the pass fuse_all_optimizer_ops).
struct ParameterUpdate {
  std::vector<std::string> input_group, output_group;
  bool whole = false;  // the rule needs norms: it cannot update a part of a parameter
};
inline bool is_update(const Op& op) { return op.def->find_trait<ParameterUpdate>() != nullptr; }

// Defines slots, groups and shape rule. needs_step: the rule depends on the number of updates.
// states: names of a parameter's states.
void define_update_op(OpDef& def, bool needs_step, const std::vector<std::string>& states);

// The variable, or a cast of it.
VarId in_float32(Program& program, SectionId section, VarId id, const std::string& hint);

// Appends parameter -= learning_rate * (step + weight_decay * parameter). step: float32, of the
// parameter's shape.
void append_step(UpdateContext& context, const Update& update, VarId step);

// Appends an update of one parameter, including its copy if it has one (Var::copy_of). Attributes
// that are not given are the settings of the same name, and the parameter's weight decay.
// own_inputs: those that the operation declares between the step and the groups.
void append_update_op(UpdateContext& context, const Update& update, const std::string& type,
                      const std::vector<VarId>& states, Attributes attributes = {},
                      const std::vector<VarId>& own_inputs = {});

// The groups of an update operation.
struct UpdateGroups {
  // inputs: the number of the operation's inputs. kInternal if it is not an update.
  UpdateGroups(const OpDef& def, size_t inputs) {
    const ParameterUpdate* update = def.find_trait<ParameterUpdate>();
    FLEET_CHECK(update, def.type + " does not update parameters");
    first_input = static_cast<int>(def.inputs.size()) - 1;
    inputs_each = static_cast<int>(update->input_group.size());
    outputs_each = static_cast<int>(update->output_group.size());
    count = (static_cast<int>(inputs) - first_input) / inputs_each;
  }
  int first_input, inputs_each, outputs_each;
  int count;  // number of parameters
  int parameter(int k) const { return first_input + k * inputs_each; }
  int gradient(int k) const { return parameter(k) + 1; }
  int states() const { return inputs_each - 2; }
  // State s of parameter k, among the inputs.
  int state(int k, int s) const { return parameter(k) + 2 + s; }
  int output(int k) const { return k * outputs_each; }  // index of the parameter; its states follow
  int copy(int k) const { return output(k) + outputs_each - 1; }
};

}  // namespace fleet
