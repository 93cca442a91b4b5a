#include "optim/update_op.h"

namespace fleet {
namespace {

void infer(ShapeContext& context) {
  const Op& op = context.op();
  const UpdateGroups groups(*op.def, op.inputs.size());
  const int inputs = groups.first_input + groups.count * groups.inputs_each;
  FLEET_CHECK(groups.count > 0 && inputs == context.input_count() &&
                  groups.count * groups.outputs_each == static_cast<int>(op.outputs.size()),
              op.type() + ": inputs and outputs do not form whole groups");
  const std::vector<std::string>& members = op.def->find_trait<ParameterUpdate>()->input_group;
  for (int k = 0; k < groups.count; ++k) {
    const Shape& shape = context.shape(groups.parameter(k));
    FLEET_CHECK(context.dtype(groups.parameter(k)) == DType::kFloat32,
                op.type() + " updates float32 only");
    FLEET_CHECK(context.dtype(groups.gradient(k)) == context.dtype(groups.gradient(0)),
                op.type() + ": gradients of different types");
    FLEET_CHECK(context.has_output(groups.copy(k)) == context.has_output(groups.copy(0)),
                op.type() + ": copies of some parameters only");
    for (int i = 1; i < groups.inputs_each; ++i) {
      context.require(context.shape(groups.parameter(k) + i) == shape,
                      members[i] + " " + context.shape(groups.parameter(k) + i).text() +
                          " of a parameter " + shape.text());
    }
    context.set_like(groups.output(k), groups.parameter(k));
    for (int s = 0; s < groups.states(); ++s) {
      context.set_like(groups.output(k) + 1 + s, groups.state(k, s));
    }
  }
}

}  // namespace

void define_update_op(OpDef& def, const std::vector<std::string>& other_inputs,
                      const std::vector<std::string>& states) {
  def.inputs = {
      {"learning_rate"}, {"gradient_scale", Slot::kOptional}, {"found_inf", Slot::kOptional}};
  for (const std::string& name : other_inputs) def.inputs.push_back({name});
  def.inputs.push_back({"tensors", Slot::kVariadic});
  def.outputs = {{"tensors", Slot::kVariadic}};
  auto& groups = def.add_trait<ParameterUpdate>();
  groups = {.input_group = {"parameter", "gradient"}, .output_group = {"parameter"}};
  for (const std::string& state : states) {
    groups.input_group.push_back(state);
    groups.output_group.push_back(state);
  }
  groups.output_group.push_back("copy");
  def.infer = infer;
}

void append_update_op(UpdateContext& context, const Update& update, const std::string& type,
                      const std::vector<VarId>& states, Attributes attributes) {
  const OpDef& def = op_registry().get(type);
  for (const auto& [name, initial] : def.attributes) {
    if (attributes.has(name)) continue;
    if (name == "weight_decay") {
      attributes.set(name, update.weight_decay);
    } else if (std::holds_alternative<bool>(initial)) {
      attributes.set(name, context.settings().boolean(name));
    } else {
      attributes.set(name, context.settings().number(name));
    }
  }
  std::vector<VarId> inputs = {update.learning_rate, update.gradient_scale,
                               context.scaling().found_inf};
  if (def.inputs.size() > kUpdateOtherInputs + 1) inputs.push_back(context.step());
  inputs.insert(inputs.end(), {update.parameter, update.gradient});
  inputs.insert(inputs.end(), states.begin(), states.end());
  std::vector<VarId> outputs = {update.parameter};
  outputs.insert(outputs.end(), states.begin(), states.end());
  outputs.push_back(context.program().copy_of(update.parameter));
  context.program().append(context.section(), type, std::move(inputs), std::move(outputs),
                           std::move(attributes));
}

}  // namespace fleet
