// ema: updates any number of averages, each with the value it follows: see optim/ema.h. Slots as in
// optim/update_op.h: learning_rate is 1 - decay, the "parameter" of a group is the average, its
// "gradient" the value (float32, or bfloat16 of parameters in it); found_inf: the averages stay.
// The averages are float32.
// ema_rate: from the number of updates so far, rate float32 [1] = 1 - decay (1 up to the first
// update) and begun int32 [1]: 1 after the first update, else 0.
#include "optim/ema.h"

#include "optim/averages.h"
#include "optim/update_op.h"

namespace fleet {

FLEET_OP(ema) { define_update_op(def, /*needs_step=*/false, /*states=*/{}); }

FLEET_OP(ema_rate) {
  def.inputs = {{"updates"}};
  def.outputs = {{"rate"}, {"begun"}};
  def.attributes = {{"decay", 0.9999}, {"warmup", false}, {"gamma", 1.0}, {"power", 2.0 / 3}};
  def.infer = [](ShapeContext& context) {
    FLEET_CHECK(context.shape(0) == Shape{1} && context.dtype(0) == DType::kInt64,
                "ema_rate: updates that are not one int64");
    context.set(0, {1}, DType::kFloat32);
    context.set(1, {1}, DType::kInt32);
  };
}

void append_ema(Program& program, SectionId forward, SectionId evaluate, SectionId optimize,
                VarId found_inf, const EmaOptions& options) {
  Averages averages(program, options);
  averages.add_all(forward, evaluate);
  averages.redirect({evaluate});
  averages.start(program.add_section("start_ema", {.training = false, .refresh = true}), evaluate);
  const Predicate when = program.sections()[optimize].when;
  averages.update(program.add_section(kEmaSection, when), found_inf);
  verify(program);
}

}  // namespace fleet
