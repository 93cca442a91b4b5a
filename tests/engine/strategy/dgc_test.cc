#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/captured_log.h"
#include "tests/engine/strategy/strategy_training.h"

namespace fleet {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// Weights of 784 x 32 = 25088 and 32 x 10 elements, and their biases.
Program trained_with_dgc(const std::string& text, const PassContext& context,
                         const std::string& optimizer = R"({"name": "momentum"})") {
  return trained_program(
      text, context, {.model = "mlp", .settings = R"({"hidden": [32]})", .optimizer = optimizer});
}

std::vector<const Op*> ops_of(const Program& program, const std::string& type) {
  std::vector<const Op*> found;
  for (const Op& op : program.ops()) {
    if (op.type() == type) found.push_back(&op);
  }
  return found;
}

const Predicate& when(const Program& program, const Op& op) {
  return program.sections()[op.section].when;
}

// The number of elements that are sent in each stage, and the first step of each.
struct Stages {
  std::vector<int64_t> sent, from;
};
Stages stages_of(const std::string& configs) {
  const Program program = trained_with_dgc("dgc: true dgc_configs {" + configs + "}", {.ranks = 2});
  Stages stages;
  for (const Op* op : ops_of(program, "dgc_select")) {
    stages.sent.push_back(op->attributes.integers("counts").at(0));
    stages.from.push_back(when(program, *op).from_step);
  }
  return stages;
}

TEST(Dgc, Defaults_SendAThousandthFromTheFirstStep) {
  const Stages stages = stages_of("");
  EXPECT_THAT(stages.sent, ElementsAre(25));
  EXPECT_THAT(stages.from, ElementsAre(0));
}

// Stage floor((step - 10) * 4 / 10), and what Paddle's operator computes in float.
TEST(Dgc, Ramp_IsPaddles) {
  const Stages stages =
      stages_of("rampup_begin_step: 10 rampup_step: 10 sparsity: [0.75, 0.9375, 0.984375, 0.999]");
  EXPECT_THAT(stages.sent, ElementsAre(6272, 1568, 392, 25));
  EXPECT_THAT(stages.from, ElementsAre(10, 13, 15, 18));
}

// With rampup_step 1 the second step has index 3, which is clamped to 2.
TEST(Dgc, RampShorterThanItsList_LeavesSparsitiesOut) {
  const Stages stages = stages_of("rampup_step: 1 sparsity: [0.75, 0.9, 0.99]");
  EXPECT_THAT(stages.from, ElementsAre(0, 1));
  EXPECT_THAT(stages.sent, ElementsAre(6272, 250));
}

TEST(Dgc, SmallParameters_AreSummedWholeInEveryStep) {
  const Program program = trained_with_dgc("dgc: true", {.ranks = 4});
  const auto sums = ops_of(program, "all_reduce");
  ASSERT_EQ(sums.size(), 1u);
  EXPECT_EQ(sums[0]->inputs.size(), 3u);
  for (const VarId id : sums[0]->inputs) EXPECT_LT(program.var(id).shape.elements(), 16384);
  EXPECT_EQ(when(program, *sums[0]).until_step, kForever);
  for (const Op* update : ops_of(program, "momentum")) {
    for (const VarId id : update->outputs) {
      if (id == kNoVar) continue;
      EXPECT_LT(program.var(id).shape.elements(), 16384);
    }
  }
}

TEST(Dgc, BeforeTheRamp_AllAreSummedAndUpdatedAsEver) {
  const Program program =
      trained_with_dgc("dgc: true dgc_configs { rampup_begin_step: 5 }", {.ranks = 2});
  for (const char* type : {"all_reduce", "momentum"}) {
    int until_five = 0;
    for (const Op* op : ops_of(program, type)) {
      const int64_t until = when(program, *op).until_step;
      if (until == 5) ++until_five;
      EXPECT_TRUE(until == 5 || until == kForever);
    }
    EXPECT_EQ(until_five, 1) << type;
  }
}

// An index and a value of each element that is sent, and nothing else.
TEST(Dgc, Message_HasEightBytesAnElement) {
  const Program program = trained_with_dgc("dgc: true", {.ranks = 4});
  const auto gathers = ops_of(program, "all_gather");
  ASSERT_EQ(gathers.size(), 1u);
  EXPECT_EQ(program.var(gathers[0]->inputs[0]).shape, (Shape{2 * 25}));
  EXPECT_EQ(program.var(gathers[0]->outputs[0]).shape, (Shape{4 * 2 * 25}));
}

TEST(Dgc, WhatIsNotSent_IsEachRanksOwn) {
  const Program program = trained_with_dgc("dgc: true", {.ranks = 2});
  int own = 0;
  for (VarId id = 0; id < program.var_count(); ++id) {
    const Var& var = program.var(id);
    if (!var.per_rank) continue;
    EXPECT_EQ(var.shape.elements(), 25088) << var.name;
    ++own;
  }
  EXPECT_EQ(own, 2);  // velocity and residual
}

TEST(Dgc, WithMergedGradients_SelectsInEveryKthStep) {
  const Program program = trained_with_dgc(
      "dgc: true gradient_merge: true gradient_merge_configs { k_steps: 3 } recompute: true "
      "recompute_configs { checkpoints: 'fc1.out' } without_graph_optimization: true "
      "dgc_configs { rampup_begin_step: 4 }",
      {.ranks = 2});
  ASSERT_FALSE(ops_of(program, "dgc_select").empty());
  for (const char* type : {"dgc_select", "dgc_apply", "all_gather", "all_reduce", "momentum"}) {
    for (const Op* op : ops_of(program, type)) EXPECT_EQ(when(program, *op).every, 3) << type;
  }
}

// Widens low gradients, and keeps low copies of parameters up to date.
TEST(Dgc, WithLowGradients_SelectsInFloat32) {
  const Program program = trained_with_dgc(
      "dgc: true amp: true recompute: true recompute_configs { checkpoints: 'fc1.out' } "
      "without_graph_optimization: true",
      {.ranks = 2, .low_types = {DType::kBFloat16}});
  const auto selects = ops_of(program, "dgc_select");
  ASSERT_EQ(selects.size(), 1u);
  const VarId parameter = selects[0]->inputs[0];
  EXPECT_EQ(program.var(selects[0]->inputs[1]).dtype, DType::kFloat32);
  const VarId copy = program.copy_of(parameter);
  ASSERT_NE(copy, kNoVar);
  int casts = 0;
  for (const Op* op : ops_of(program, "cast")) {
    casts += op->section == selects[0]->section && op->outputs[0] == copy;
  }
  EXPECT_EQ(casts, 1);
}

TEST(Dgc, WhereItCannotAct_IsOffAndSaysWhy) {
  const auto names = [](const std::string& text, const PassContext& context) {
    return make_strategy(text, context).names();
  };
  EXPECT_THAT(names("dgc: true", {}), Not(Contains("dgc")));
  EXPECT_THAT(names("dgc: true", {.ranks = 2, .optimizer = "adam"}), Not(Contains("dgc")));
  EXPECT_THAT(names("dgc: true build_strategy { reduce_strategy: 1 }", {.ranks = 2}),
              Not(Contains("dgc")));
  EXPECT_THAT(names("dgc: true", {.ranks = 2}), Contains("dgc"));
}

TEST(Dgc, OverLars_Wins) {
  const Strategy strategy = make_strategy("dgc: true lars: true", {.ranks = 2});
  EXPECT_THAT(strategy.names(), Contains("dgc"));
  EXPECT_THAT(strategy.names(), Not(Contains("lars")));
}

TEST(Dgc, NoLargeParameter_IsSaid) {
  const std::string line = captured_log([] {
    const Program program =
        trained_program("dgc: true", {.ranks = 2},
                        {.model = "mlp", .settings = R"({"hidden": [8]})", .optimizer = ""});
    EXPECT_FALSE(ops_of(program, "all_reduce").empty());
  });
  EXPECT_THAT(line, ::testing::AllOf(HasSubstr("dgc: no effect"), HasSubstr("16384 elements")));
}

TEST(Dgc, WhatCannotBe_IsRefused) {
  for (const char* configs : {"rampup_begin_step: -1", "rampup_step: 0", "sparsity: 1",
                              "sparsity: 0", "sparsity: [0.9, -0.5]"}) {
    EXPECT_THROW(make_strategy(std::string("dgc: true dgc_configs {") + configs + "}"), Error)
        << configs;
  }
  for (const char* clip : {"global_norm", "value"}) {
    EXPECT_THROW(trained_with_dgc("dgc: true", {.ranks = 2},
                                  std::string(R"({"name": "momentum", "clip": ")") + clip + "\"}"),
                 Error);
  }
}

}  // namespace
}  // namespace fleet
