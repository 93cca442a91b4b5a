// Factors of channels between two convolutions, as in squeeze and excitation.
#include <gtest/gtest.h>

#include "base/cpu.h"
#include "exec/plan.h"
#include "passes/backward.h"

namespace fleet {
namespace {

TEST(ChannelScale, BetweenConvolutions_ImagesNeedNoReorder) {
  if (!FLEET_X86_HAS("avx2")) GTEST_SKIP() << "oneDNN has blocks of channels from AVX2 on";
  const Shape image{2, 32, 14, 14};
  Program program;
  const SectionId forward = program.add_section("forward", {});
  const VarId x = program.feed("x", DType::kFloat32, image);
  const VarId gate = program.parameter("gate", {2, 32, 1, 1}, {});
  const VarId first = program.parameter("first", {32, 32, 1, 1}, {});
  const VarId second = program.parameter("second", {32, 32, 1, 1}, {});
  const VarId y = program.emit(forward, "conv2d", {x, first})[0];
  const VarId scaled =
      program.emit(forward, "elementwise_mul", {y, gate}, {{"axis", int64_t{0}}})[0];
  const VarId z = program.emit(forward, "conv2d", {scaled, second})[0];
  const VarId dz = program.feed("dz", DType::kFloat32, image);
  append_backward_from(program, forward, {{z, dz}}, {});
  const std::vector<VarId> results = {z, program.gradient(first), program.gradient(gate)};
  const Plan plan = plan_program(program, results);
  for (const PlannedOp& planned : plan.ops) {
    if (planned.op.type() != "reorder") continue;
    const VarId from = planned.op.inputs[0];
    if (from == x || from == dz) continue;  // they are plain
    const Shape& shape = plan.program.var(planned.op.outputs[0]).shape;
    EXPECT_TRUE(shape != image || from == z) << plan.program.var(from).name;
  }
}

}  // namespace
}  // namespace fleet
