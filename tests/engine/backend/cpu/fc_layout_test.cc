// The layouts that fc gives weights: blocked ones slow the weight gradient of many rows down.
#include <gtest/gtest.h>

#include "backend/cpu/device.h"
#include "exec/plan.h"
#include "passes/backward.h"

namespace fleet {
namespace {

TEST(FcLayout, ManyRows_TrainWithPlainWeightsAndNoReorder) {
  Program program;
  const SectionId forward = program.add_section("forward", {});
  const Shape shape{128, 64};
  const VarId x = program.parameter("x", {512, 64}, {});
  const VarId w = program.parameter("w", shape, {});
  const VarId y = program.emit(forward, "fc", {x, w})[0];
  const VarId dy = program.feed("dy", DType::kFloat32, program.var(y).shape);
  append_backward_from(program, forward, {{y, dy}}, {});
  const VarId dw = program.gradient(w), dx = program.gradient(x);
  cpu::CpuDevice device;
  PlanOptions options;
  options.device = &device;
  const Plan plan = plan_program(program, {dx, dw}, options);
  EXPECT_EQ(plan.vars[w].layout, Layout::plain(shape));
  EXPECT_EQ(plan.vars[dw].layout, Layout::plain(shape));
  for (const PlannedOp& planned : plan.ops) EXPECT_NE(planned.op.type(), "reorder");
}

}  // namespace
}  // namespace fleet
