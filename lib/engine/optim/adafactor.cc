// adafactor (Shazeer and Stern, 2018, "Adafactor: Adaptive Learning Rates with Sublinear Memory
// Cost") in PyTorch's form, t = number of updates, w = t^beta2_decay:
//   r = lerp(r, mean of g^2 over each row, w);  c = lerp(c, mean of g^2 over each column, w)
//   v = r c / max(mean of r, epsilon1)          (a vector: v = lerp(v, g^2, w))
//   u = g / sqrt(max(v, epsilon1^2));  u /= max(1, RMS(u) / clip_threshold)
//   p -= lr weight_decay p + min(lr, 1 / sqrt(t)) max(epsilon2, RMS(p)) u
// Rows and columns are the last two dimensions; r and c have one of each of the dimensions before.
// scale_parameter false leaves out max(epsilon2, RMS(p)), and relative_step false 1 / sqrt(t): as
// in Transformers.
//
// adafactor_step: step, of the gradient's shape, is the last line's right side without the decay
// and divided by lr. "row" is v if there is no column. All but step and found_inf are float32.
#include "ops/mixed_precision.h"
#include "optim/adafactor_rule.h"
#include "optim/optimizer.h"
#include "optim/row_update.h"
#include "optim/update_op.h"

namespace fleet {
namespace {

Shape without(Shape shape, int axis) {
  shape[axis] = 1;
  return shape;
}
// Shapes of the states of a parameter with at least two dimensions.
Shape rows_of(const Shape& shape) { return without(shape, shape.rank() - 1); }
Shape columns_of(const Shape& shape) { return without(shape, shape.rank() - 2); }

void infer(ShapeContext& context) {
  const Shape& shape = context.shape(kAdafactorGradient);
  const bool factored = context.has_input(kAdafactorColumn);
  FLEET_CHECK(!factored || shape.rank() >= 2, "adafactor_step: columns of a vector");
  FLEET_CHECK(context.shape(kAdafactorRow) == (factored ? rows_of(shape) : shape) &&
                  (!factored || context.shape(kAdafactorColumn) == columns_of(shape)),
              "adafactor_step: states that do not fit the gradient");
  context.set(0, shape, DType::kFloat32);
  context.set_like(1, kAdafactorRow);
  if (factored) context.set_like(2, kAdafactorColumn);
}

void append(UpdateContext& context, const Update& update) {
  if (update.rows != kNoVar) {
    return append_row_update_op(context, update, "adafactor", {}, {}, {});
  }
  Program& program = context.program();
  const SectionId section = context.section();
  const Settings& settings = context.settings();
  const Var parameter = program.var(update.parameter);
  const bool factored = parameter.shape.rank() >= 2;
  const VarId row = factored ? context.state(update.parameter, "row", rows_of(parameter.shape))
                             : context.state(update.parameter, "variance", parameter.shape);
  const VarId column =
      factored ? context.state(update.parameter, "column", columns_of(parameter.shape)) : kNoVar;
  VarId squares = kNoVar;
  if (settings.boolean("scale_parameter")) {
    squares = program.emit(section, "sum_of_squares", {update.parameter}, {},
                           parameter.name + ".squares")[0];
  }
  const VarId gradient =
      in_float32(program, section, update.gradient, parameter.name + ".gradient.float32");
  const VarId step = program.temporary(parameter.name + ".step");
  Attributes attributes = {{"relative_step", settings.boolean("relative_step")},
                           {kUpdatedParameter, parameter.name}};
  for (const char* key : {"beta2_decay", "epsilon1", "epsilon2", "clip_threshold"}) {
    attributes.set(key, settings.number(key));
  }
  program.append(section, "adafactor_step",
                 {gradient, update.gradient_scale, context.scaling().found_inf, context.step(),
                  update.learning_rate, squares, row, column},
                 {step, row, column}, std::move(attributes));
  append_step(context, update, step);
}

}  // namespace

FLEET_OP(adafactor_step) {
  def.inputs = {{"gradient"},
                {"gradient_scale", Slot::kOptional},
                {"found_inf", Slot::kOptional},
                {"step"},
                {"learning_rate"},
                {"parameter_squares", Slot::kOptional},
                {"row"},
                {"column", Slot::kOptional}};
  def.outputs = {{"step"}, {"row"}, {"column", Slot::kOptional}};
  def.attributes = {{"beta2_decay", -0.8},
                    {"epsilon1", 0x1p-23},
                    {"epsilon2", 1e-3},
                    {"clip_threshold", 1.0},
                    {"relative_step", true}};
  def.inplace = {{kAdafactorRow, 1}, {kAdafactorColumn, 2}};
  def.add_trait<MixedPrecision>().on_custom_lists = false;
  def.infer = infer;
}

FLEET_OPTIMIZER(adafactor) {
  def.help =
      "steps divided by the root of a second moment that is kept as row and column means "
      "(Adafactor); decoupled weight decay";
  def.schema.number("beta2_decay", -0.8, -10, 0, "update t keeps 1 - t^beta2_decay of the means")
      .number("epsilon1", 0x1p-23, 0, 1, "smallest root of the second moment")
      .number("epsilon2", 1e-3, 0, 1e6, "smallest root mean square of a parameter in its steps")
      .number("clip_threshold", 1, 1, 1e6, "largest root mean square of a step before scaling")
      .boolean("scale_parameter", true, "multiply steps by the root mean square of the parameter")
      .boolean("relative_step", true, "limit the rate of update t to 1 / sqrt(t)");
  def.append = append;
}

}  // namespace fleet
