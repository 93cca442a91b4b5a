// Parameters in bfloat16 (train.weights_dtype): the Program that they make, and what cannot be
// combined with them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "optim/update_op.h"
#include "tests/engine/strategy/strategy_training.h"
#include "tests/errors.h"

namespace fleet {
namespace {

PassContext narrow_context() {
  return {.low_types = {DType::kBFloat16}, .weights = DType::kBFloat16, .seed = 3};
}

TEST(WeightsDType, UpdatesOfBFloat16_HaveStatesOfItAndNoCopies) {
  const Program program = trained_program("amp: true", narrow_context());
  size_t narrow = 0;
  for (const VarId id : program.parameters()) {
    EXPECT_EQ(program.copy_of(id), kNoVar);
    EXPECT_EQ(program.var(id).dtype, DType::kBFloat16) << program.var(id).name;
    EXPECT_EQ(program.var(program.gradient(id)).dtype, DType::kBFloat16) << program.var(id).name;
    const VarId state = program.find(program.var(id).name + ".momentum");
    ASSERT_NE(state, kNoVar);
    EXPECT_EQ(program.var(state).dtype, DType::kBFloat16);
    ++narrow;
  }
  size_t keys = 0;
  for (const Op& op : program.ops()) {
    EXPECT_TRUE(op.type() != "cast" || program.var(op.inputs[0]).kind != VarKind::kParameter);
    if (is_update(op)) keys += op.attributes.integers(kRoundingKeys).size();
  }
  EXPECT_EQ(keys, narrow);
}

TEST(WeightsDType, WithoutAmp_EachReaderCastsAParameterItself) {
  const Program program = trained_program("", narrow_context());
  int casts = 0;
  for (const Op& op : program.ops()) {
    const bool casts_one =
        op.type() == "cast" && program.var(op.inputs[0]).kind == VarKind::kParameter;
    casts += casts_one;
    for (const VarId id : op.inputs) {
      if (id == kNoVar || program.var(id).kind != VarKind::kParameter) continue;
      EXPECT_TRUE(casts_one || is_update(op)) << op.type();
    }
  }
  EXPECT_GT(casts, static_cast<int>(program.parameters().size()));
}

TEST(WeightsDType, ScalesAndShiftsOfNorms_StayFloat32) {
  const Program program = trained_program("amp: true", narrow_context(), {.model = "resnet20"});
  int wide = 0;
  for (const VarId id : program.parameters()) {
    const Var& var = program.var(id);
    const bool norm = var.name.find("bn") != std::string::npos ||
                      var.name.find("downsample.1") != std::string::npos;
    wide += norm;
    EXPECT_EQ(var.dtype, norm ? DType::kFloat32 : DType::kBFloat16) << var.name;
  }
  EXPECT_GT(wide, 0);
}

TEST(WeightsDType, Float32_IsTheSameProgramAsWithoutTheKey) {
  PassContext wide = narrow_context();
  wide.weights = DType::kFloat32;
  EXPECT_EQ(print_text(trained_program("amp: true", wide)),
            print_text(trained_program("amp: true", {.low_types = {DType::kBFloat16}})));
}

TEST(WeightsDType, WhatNeedsFloat32_IsRefused) {
  PassContext context = narrow_context();
  context.ranks = 2;
  for (const char* text : {"dgc: true", "localsgd: true", "adaptive_localsgd: true"}) {
    const Error error = thrown_by([&] { make_strategy(text, context); });
    EXPECT_THAT(error, IsUsageError("train.weights_dtype")) << text;
  }
  context.low_types = {DType::kFloat16};
  EXPECT_THAT(thrown_by([&] { make_strategy("amp: true", context); }),
              IsUsageError("train.weights_dtype"));
}

}  // namespace
}  // namespace fleet
