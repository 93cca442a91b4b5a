#include "optim/row_update.h"

namespace fleet {
namespace {

void infer(ShapeContext& context) {
  const Shape& parameter = context.shape(kRowUpdateParameter);
  FLEET_CHECK(parameter.rank() == 2, context.op().type() + ": a parameter without rows");
  const Shape &rows = context.shape(kRowUpdateRows), &values = context.shape(kRowUpdateValues);
  FLEET_CHECK(context.dtype(kRowUpdateRows) == DType::kInt64 && rows.rank() == 1 &&
                  values == Shape({rows[0], parameter[1]}),
              context.op().type() + ": values that do not fit rows and parameter");
  for (int i = kRowUpdateValues; i < context.input_count(); ++i) {
    FLEET_CHECK(context.dtype(i) == DType::kFloat32, context.op().type() + " updates float32 only");
    if (i == kRowUpdateValues) continue;
    FLEET_CHECK(context.shape(i) == parameter, context.op().type() + ": a state of another shape");
    context.set_like(i - kRowUpdateParameter, i);
  }
}

[[noreturn]] void refuse(const std::string& parameter, const std::string& what,
                         const std::string& next) {
  throw Error(ErrorCode::kUsage, what, "the sparse embedding '" + parameter + "'",
              next + ", or set sparse to false");
}

}  // namespace

void define_row_update_op(OpDef& def, bool needs_step, const std::vector<std::string>& states) {
  def.inputs = {{"learning_rate"},
                {"gradient_scale", Slot::kOptional},
                {"found_inf", Slot::kOptional},
                {"step", needs_step ? Slot::kRequired : Slot::kOptional},
                {"rows"},
                {"values"},
                {"parameter"}};
  def.outputs = {{"parameter"}};
  for (const std::string& state : states) {
    def.inputs.push_back({state});
    def.outputs.push_back({state});
  }
  for (int i = 0; i < static_cast<int>(def.outputs.size()); ++i) {
    def.inplace.emplace_back(i, kRowUpdateParameter + i);
  }
  def.infer = infer;
}

VarId rows_of_gradient(const Program& program, VarId gradient) {
  for (const Op& op : program.ops()) {
    if (op.type() == "embedding_grad_rows" && op.outputs[1] == gradient) return op.outputs[0];
  }
  return kNoVar;
}

void append_row_update_op(UpdateContext& context, const Update& update, const std::string& type,
                          const std::vector<VarId>& states, Attributes attributes,
                          std::vector<VarId> scalars) {
  Program& program = context.program();
  const Var& parameter = program.var(update.parameter);
  const std::string rows_type = type + "_rows";
  if (!op_registry().find(rows_type)) {
    refuse(parameter.name, "the optimizer " + type + " changes all rows in each step",
           "set optimizer.name to sgd or adagrad");
  }
  if (update.weight_decay != 0) {
    refuse(parameter.name, "its weight decay changes all rows in each step",
           "add '" + parameter.name + "' to optimizer.exclude_from_weight_decay");
  }
  const bool narrow =
      parameter.dtype != DType::kFloat32 || program.var(update.gradient).dtype != DType::kFloat32;
  if (narrow || program.copy_of(update.parameter) != kNoVar) {
    refuse(parameter.name, "its rows would be computed in a 16-bit type",
           "set train.weights_dtype to float32, and remove amp_configs.use_pure_bf16 and "
           "use_pure_fp16");
  }
  std::vector<VarId> inputs = std::move(scalars), outputs = {update.parameter};
  inputs.insert(inputs.end(), {update.rows, update.gradient, update.parameter});
  inputs.insert(inputs.end(), states.begin(), states.end());
  outputs.insert(outputs.end(), states.begin(), states.end());
  program.append(context.section(), rows_type, std::move(inputs), std::move(outputs),
                 std::move(attributes));
}

}  // namespace fleet
