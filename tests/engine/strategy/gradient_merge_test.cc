#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/captured_log.h"
#include "tests/engine/strategy/strategy_training.h"

namespace fleet {
namespace {

using testing::Contains;
using ::testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

const std::string kMerge = "gradient_merge: true gradient_merge_configs { k_steps: 4 }";

Program trained_with_gradient_merge(const std::string& text, const PassContext& context) {
  return trained_program(text, context);
}

TEST(GradientMerge, SumsAndUpdates_RunInEveryKthStep) {
  const Program program = trained_with_gradient_merge(kMerge, {.ranks = 2});
  int sums = 0;
  for (const Op& op : program.ops()) {
    const Predicate& when = program.sections()[op.section].when;
    if (op.type() == "all_reduce" || op.type() == "momentum" || op.type() == "fill") {
      const bool seed = op.type() == "fill" && program.sections()[op.section].name == "backward";
      EXPECT_EQ(when.every, seed ? 1 : 4) << op.type();
    }
    if (op.type() != "all_reduce") continue;
    ++sums;
    for (const VarId id : op.inputs) {
      EXPECT_TRUE(program.var(id).per_rank);
      EXPECT_THAT(program.var(id).name, EndsWith(".merged_gradient"));
    }
  }
  EXPECT_GT(sums, 0);
}

// The allreduce of a bucket stands behind the operation that completes it, not behind the whole
// backward pass.
TEST(GradientMerge, Sums_StandWithinTheBackwardPass) {
  const Program program =
      trained_with_gradient_merge(kMerge + " fuse_all_reduce_ops: false", {.ranks = 2});
  const SectionId backward = program.find_section("backward");
  size_t inner_group_size = 0, last_backward = 0;
  for (size_t i = 0; i < program.ops().size(); ++i) {
    const Op& op = program.ops()[i];
    if (op.type() == "all_reduce" && inner_group_size == 0) inner_group_size = i;
    if (op.section == backward) last_backward = i;
  }
  EXPECT_LT(inner_group_size, last_backward);
}

double seed_of(const Program& program) {
  for (const Op& op : program.ops()) {
    if (op.type() == "fill" && program.sections()[op.section].name == "backward") {
      return op.attributes.number("value");
    }
  }
  return 0;
}

TEST(GradientMerge, Average_IsInTheLossGradient) {
  EXPECT_EQ(seed_of(trained_with_gradient_merge(kMerge, {.ranks = 2})), 1.0 / 8);
  EXPECT_EQ(
      seed_of(trained_with_gradient_merge(
          "gradient_merge: true gradient_merge_configs { k_steps: 4 avg: false }", {.ranks = 2})),
      1.0 / 2);
}

TEST(GradientMerge, MixedPrecision_AddsUpInFloat32) {
  const Program program =
      trained_with_gradient_merge(kMerge + " amp: true", {.low_types = {DType::kBFloat16}});
  for (const VarId parameter : program.parameters()) {
    EXPECT_EQ(program.var(program.gradient(parameter)).dtype, DType::kFloat32);
  }
}

TEST(GradientMerge, OneStep_IsOff) {
  EXPECT_THAT(make_strategy("gradient_merge: true").names(), Not(Contains("gradient_merge")));
  EXPECT_THAT(make_strategy(kMerge).names(), Contains("gradient_merge"));
  EXPECT_THROW(make_strategy("gradient_merge: true gradient_merge_configs { k_steps: 0 }"), Error);
}

TEST(GradientMerge, WhatIsCounted_IsSaid) {
  const std::string line = captured_log([] { trained_with_gradient_merge(kMerge, {}); });
  EXPECT_THAT(line, HasSubstr("parameters are updated every 4 steps"));
}

}  // namespace
}  // namespace fleet
