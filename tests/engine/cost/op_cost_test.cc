#include <gtest/gtest.h>

#include "cost/rates.h"

namespace fleet {
namespace {

OpCost cost_of_last(Program program, VarId result) {
  const Plan plan = plan_program(std::move(program), {result});
  return cost_of(plan, plan.ops.back());
}

TEST(OpCost, OfAConvolution_IsItsProductsAndSums) {
  Program program;
  const SectionId section = program.add_section("main", {});
  const VarId x = program.feed("x", DType::kFloat32, {2, 16, 8, 8});
  const VarId weight = program.parameter("weight", {32, 16, 3, 3}, {});
  const VarId y = program.emit(section, "conv2d", {x, weight, kNoVar},
                               {{"paddings", std::vector<int64_t>{1, 1}}})[0];
  const Plan plan = plan_program(std::move(program), {y});
  int convolutions = 0;
  for (const PlannedOp& planned : plan.ops) {
    if (planned.op.type() != "conv2d") continue;
    ++convolutions;
    const OpCost cost = cost_of(plan, planned);
    EXPECT_DOUBLE_EQ(cost.operations, 2.0 * (2 * 32 * 8 * 8) * (16 * 3 * 3));
    EXPECT_EQ(cost.key, "conv2d 3x3 float32");
    EXPECT_GE(cost.bytes, 4.0 * (2 * 16 * 64 + 32 * 16 * 9 + 2 * 32 * 64));
  }
  EXPECT_EQ(convolutions, 1);
}

TEST(OpCost, Layout_IsTheFirstInputs) {
  Program program;
  const SectionId section = program.add_section("main", {});
  const VarId x = program.feed("x", DType::kFloat32, {2, 16, 8, 8});
  const VarId y = program.emit(section, "relu", {x})[0];
  const VarId z = program.emit(section, "mean", {y})[0];
  const Plan plan = plan_program(program, {z});
  for (const PlannedOp& planned : plan.ops) {
    EXPECT_EQ(cost_of(plan, planned).layout, "plain") << planned.op.type();
  }
  PlannedOp blocked = plan.ops.front();
  blocked.input_layouts[0] = Layout::blocked({2, 16, 8, 8}, {1024, 1024, 128, 16}, {{1, 16}});
  EXPECT_EQ(cost_of(plan, blocked).layout, "blocked");
}

TEST(OpCost, OfDepthwiseConvolutions_HasAKeyOfItsOwn) {
  Program program;
  const SectionId section = program.add_section("main", {});
  const VarId x = program.feed("x", DType::kFloat32, {1, 16, 8, 8});
  const VarId weight = program.parameter("weight", {16, 1, 3, 3}, {});
  const VarId y =
      program.emit(section, "conv2d", {x, weight, kNoVar},
                   {{"groups", int64_t{16}}, {"paddings", std::vector<int64_t>{1, 1}}})[0];
  const Plan plan = plan_program(std::move(program), {y});
  for (const PlannedOp& planned : plan.ops) {
    if (planned.op.type() != "conv2d") continue;
    EXPECT_EQ(cost_of(plan, planned).key, "conv2d depthwise float32");
    EXPECT_DOUBLE_EQ(cost_of(plan, planned).operations, 2.0 * (16 * 64) * 9);
  }
}

TEST(OpCost, OfMatmul_CountsTheSharedAxis) {
  Program program;
  const SectionId section = program.add_section("main", {});
  const VarId x = program.feed("x", DType::kFloat32, {5, 7, 3});
  const VarId y = program.feed("y", DType::kFloat32, {5, 7, 4});
  const VarId z = program.emit(section, "matmul", {x, y}, {{"transpose_x", true}})[0];
  EXPECT_DOUBLE_EQ(cost_of_last(std::move(program), z).operations, 2.0 * (5 * 3 * 4) * 7);
}

TEST(OpCost, WithoutArithmetic_HasItsBytesOnly) {
  Program program;
  const SectionId section = program.add_section("main", {});
  const VarId x = program.feed("x", DType::kFloat32, {10, 10});
  const VarId y = program.emit(section, "relu", {x})[0];
  const OpCost cost = cost_of_last(std::move(program), y);
  EXPECT_EQ(cost.operations, 0);
  EXPECT_GE(cost.bytes, 2 * 100 * 4);
  EXPECT_EQ(cost.key, "relu float32");
}

}  // namespace
}  // namespace fleet
