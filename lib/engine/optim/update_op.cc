#include "optim/update_op.h"

#include "optim/row_update.h"
#include "optim/stochastic_rounding.h"

namespace fleet {
namespace {

void check_rounding(const ShapeContext& context, const UpdateGroups& groups, DType stored) {
  const Op& op = context.op();
  FLEET_CHECK(stored == DType::kFloat32 || stored == DType::kBFloat16,
              op.type() + " updates float32 and bfloat16 only");
  if (stored == DType::kFloat32) return;
  const bool has_keys = op.attributes.has(kRoundingKeys) &&
                        op.attributes.integers(kRoundingKeys).size() == size_t(groups.count);
  FLEET_CHECK(has_keys && context.has_input(kUpdateStep),
              op.type() + ": bfloat16 without a step and a key for each parameter");
  FLEET_CHECK(!context.has_output(groups.copy(0)), op.type() + ": copies of bfloat16 parameters");
}

void infer(ShapeContext& context) {
  const Op& op = context.op();
  const UpdateGroups groups(*op.def, op.inputs.size());
  const int inputs = groups.first_input + groups.count * groups.inputs_each;
  FLEET_CHECK(groups.count > 0 && inputs == context.input_count() &&
                  groups.count * groups.outputs_each == static_cast<int>(op.outputs.size()),
              op.type() + ": inputs and outputs do not form whole groups");
  const std::vector<std::string>& members = op.def->find_trait<ParameterUpdate>()->input_group;
  const DType stored = context.dtype(groups.parameter(0));
  check_rounding(context, groups, stored);
  for (int k = 0; k < groups.count; ++k) {
    const Shape& shape = context.shape(groups.parameter(k));
    for (int i = 0; i < groups.inputs_each; ++i) {
      FLEET_CHECK(i == 1 || context.dtype(groups.parameter(k) + i) == stored,
                  op.type() + ": parameters and states of different types");
    }
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

void define_update_op(OpDef& def, bool needs_step, const std::vector<std::string>& states) {
  def.inputs = {{"learning_rate"},
                {"gradient_scale", Slot::kOptional},
                {"found_inf", Slot::kOptional},
                {"step", needs_step ? Slot::kRequired : Slot::kOptional},
                {"tensors", Slot::kVariadic}};
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

VarId in_float32(Program& program, SectionId section, VarId id, const std::string& hint) {
  if (program.var(id).dtype == DType::kFloat32) return id;
  return program.emit(section, "cast", {id}, {}, hint)[0];
}

void append_step(UpdateContext& context, const Update& update, VarId step) {
  Update applied = update;
  applied.gradient = step;
  applied.gradient_scale = kNoVar;
  append_update_op(context, applied, "sgd", {});
}

void append_update_op(UpdateContext& context, const Update& update, const std::string& type,
                      const std::vector<VarId>& states, Attributes attributes,
                      const std::vector<VarId>& own_inputs) {
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
  const Var& parameter = context.program().var(update.parameter);
  const bool rounds = parameter.dtype != DType::kFloat32;
  if (rounds) {
    const uint64_t key = rounding_key(context.seed(), parameter.name);
    attributes.set(kRoundingKeys, std::vector<int64_t>{static_cast<int64_t>(key)});
  }
  const bool steps = rounds || def.inputs[kUpdateStep].kind == Slot::kRequired;
  std::vector<VarId> inputs = {update.learning_rate, update.gradient_scale,
                               context.scaling().found_inf, steps ? context.step() : kNoVar};
  if (update.rows != kNoVar) {
    return append_row_update_op(context, update, type, states, std::move(attributes),
                                std::move(inputs));
  }
  inputs.insert(inputs.end(), own_inputs.begin(), own_inputs.end());
  inputs.insert(inputs.end(), {update.parameter, update.gradient});
  inputs.insert(inputs.end(), states.begin(), states.end());
  std::vector<VarId> outputs = {update.parameter};
  outputs.insert(outputs.end(), states.begin(), states.end());
  outputs.push_back(context.program().copy_of(update.parameter));
  context.program().append(context.section(), type, std::move(inputs), std::move(outputs),
                           std::move(attributes));
}

}  // namespace fleet
