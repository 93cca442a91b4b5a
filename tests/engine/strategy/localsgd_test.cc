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

struct TrainedWithLocalsgd {
  TrainedWithLocalsgd(const std::string& text, const PassContext& context)
      : strategy(make_strategy(text, context)) {
    append_training(program, strategy, {.model = "mlp"});
  }
  // The steps, from 1, after which parameters are averaged.
  std::vector<int64_t> averaged(int64_t steps) {
    const Predicate when = program.sections()[program.find_section("average")].when;
    std::vector<int64_t> found;
    for (int64_t step = 0; step < steps; ++step) {
      StepInfo info{.step = step};
      HostStep host{.info = info, .learning_rate = 0.1, .read = {}};
      strategy.before_step(host);
      if (when.holds(info)) found.push_back(step + 1);
    }
    return found;
  }
  Program program;
  Strategy strategy;
};

const std::string kEveryFourth = "localsgd: true localsgd_configs { k_steps: 4 begin_step: 3 }";

TEST(LocalSgd, Averages_ComeInTheStepsPaddleHas) {
  EXPECT_THAT(TrainedWithLocalsgd(kEveryFourth, {.ranks = 2}).averaged(16),
              ElementsAre(1, 2, 3, 7, 11, 15));
  EXPECT_THAT(TrainedWithLocalsgd("localsgd: true", {.ranks = 2}).averaged(3),
              ElementsAre(1, 2, 3));
}

TEST(LocalSgd, Program_SumsParametersAndNoGradients) {
  const TrainedWithLocalsgd trained(kEveryFourth, {.ranks = 4});
  const Program& program = trained.program;
  int sums = 0;
  for (const Op& op : program.ops()) {
    if (op.type() == "fill" && program.sections()[op.section].name == "backward") {
      EXPECT_EQ(op.attributes.number("value"), 1);  // a rank's own mean
    }
    if (op.type() != "all_reduce") continue;
    ++sums;
    EXPECT_EQ(op.section, program.find_section("average"));
    EXPECT_EQ(op.inputs.size(), program.parameters().size());
  }
  EXPECT_EQ(sums, 1);
  EXPECT_TRUE(program.sections()[program.find_section("average")].when.holds({.sync = true}));
  for (VarId id = 0; id < program.var_count(); ++id) {
    if (program.var(id).name.ends_with(".momentum")) {
      EXPECT_TRUE(program.var(id).per_rank) << program.var(id).name;
    }
  }
}

TEST(LocalSgd, WhereItCannotAct_IsOffAndSaysWhy) {
  const auto names = [](const std::string& text, const PassContext& context) {
    return make_strategy(text, context).names();
  };
  EXPECT_THAT(names("localsgd: true", {}), Not(Contains("localsgd")));
  EXPECT_THAT(names("localsgd: true", {.ranks = 2, .optimizer = "adam"}),
              Not(Contains("localsgd")));
  EXPECT_THAT(names(kEveryFourth + " gradient_merge: true gradient_merge_configs { k_steps: 2 }",
                    {.ranks = 2}),
              Not(Contains("localsgd")));
  EXPECT_THAT(names(kEveryFourth, {.ranks = 2}), Contains("localsgd"));
  EXPECT_THROW(make_strategy("localsgd: true localsgd_configs { k_steps: 0 }"), Error);
}

TEST(LocalSgd, FieldsOfGradientSums_AreSaidToHaveNoEffect) {
  const std::string line = captured_log([] {
    TrainedWithLocalsgd("localsgd: true nccl_comm_num: 2 fuse_grad_size_in_MB: 32", {.ranks = 2});
  });
  EXPECT_THAT(line, HasSubstr("exchange no gradients: nccl_comm_num\n"));
}

TEST(LocalSgd, HalfPrecisionSums_HaveNoEffect) {
  const std::string line = captured_log([] {
    const TrainedWithLocalsgd trained("localsgd: true fp16_allreduce: true", {.ranks = 2});
    for (const Op& op : trained.program.ops()) EXPECT_NE(op.type(), "cast");
  });
  EXPECT_THAT(line, HasSubstr("fp16_allreduce has no effect"));
}

}  // namespace
}  // namespace fleet
