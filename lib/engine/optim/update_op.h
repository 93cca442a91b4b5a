// Common parts of the operations that update parameters (sgd, momentum, adam).
//
// Inputs: learning_rate float32 [1]; gradient_scale float32 [1], optional; found_inf int32 [1],
// optional; the rule's own; then one group per parameter: parameter, gradient, states. Outputs: one
// group per parameter: parameter and states, the same variables; copy.
//
// g is the gradient times gradient_scale (from clipping and loss scaling; absent: 1), computed in
// float32. If found_inf is not 0, parameters and states do not change; copies are written all the
// same (the Plan may have put a reorder behind them). Parameters and states are float32 and updated
// in place. The gradients of one operation have one type: float32, float16 or bfloat16. The copy
// (kNoVar: none; either all groups have one or none) is a state of the gradients' or another low
// type that receives the new parameter, rounded.
// The members of a group share one layout, except that the Plan may reorder the copy behind it.
#pragma once

#include "optim/optimizer.h"

namespace fleet {

// Positions among the inputs.
inline constexpr int kUpdateLearningRate = 0, kUpdateGradientScale = 1, kUpdateFoundInf = 2;
inline constexpr int kUpdateOtherInputs = 3;

// The trait of update operations: the variadic inputs and outputs come in groups, one per
// parameter, with these members in this order. Operations that are equal in everything else can be
// merged into one (the pass fuse_all_optimizer_ops).
struct ParameterUpdate {
  std::vector<std::string> input_group, output_group;
};
inline bool is_update(const Op& op) { return op.def->find_trait<ParameterUpdate>() != nullptr; }

// Defines slots, groups and shape rule. other_inputs: the rule's own, after the three that all
// rules have. states: names of a parameter's states.
void define_update_op(OpDef& def, const std::vector<std::string>& other_inputs,
                      const std::vector<std::string>& states);

// Appends an update of one parameter, including its copy if it has one (Var::copy_of). A rule with
// another input gets the number of updates. Attributes that are not given are the settings of the
// same name, and the parameter's weight decay.
void append_update_op(UpdateContext& context, const Update& update, const std::string& type,
                      const std::vector<VarId>& states, Attributes attributes = {});

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
