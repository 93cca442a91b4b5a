#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "strategy/server_mode.h"
#include "tests/captured_log.h"
#include "tests/engine/strategy/strategy_training.h"
#include "tests/errors.h"

namespace fleet {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr PassContext kTrainers{.ranks = 4, .servers = 2};

std::vector<std::string> saved_names(const Program& program) {
  std::vector<std::string> names;
  for (VarId id = 0; id < program.var_count(); ++id) {
    if (is_saved(program.var(id))) names.push_back(program.var(id).name);
  }
  return names;
}

TEST(ParameterServers, Updates_RunOnlyInStepsWithTheFlag) {
  const Program program = trained_program("", kTrainers);
  const Predicate when = program.sections()[program.find_section("optimize")].when;
  EXPECT_FALSE(when.holds({}));
  ASSERT_THAT(program.flags(), Contains(kLocalUpdateFlag));
  EXPECT_TRUE(when.holds({.flags = uint64_t{1} << when.flag}));
}

TEST(ParameterServers, Gradients_AreKeptAndNotSummed) {
  Strategy strategy = make_strategy("", kTrainers);
  Program program;
  append_training(program, strategy, {.on_nan = OnNan::kStop});
  for (const Op& op : program.ops()) {
    EXPECT_NE(op.type(), "all_reduce");
    if (op.type() == "fill" && program.sections()[op.section].name == "backward") {
      EXPECT_EQ(op.attributes.number("value"), 0.25);  // of the mean over all trainers
    }
  }
  for (const VarId parameter : program.parameters()) {
    EXPECT_THAT(strategy.keep(), Contains(program.gradient(parameter)))
        << program.var(parameter).name;
  }
}

TEST(ParameterServers, TrainersThatRunApart_HaveTheGradientsOfTheirOwnLoss) {
  for (const char* text : {"a_sync: true", "a_sync_configs { k_steps: 10 }"}) {
    const Program program = trained_program(text, kTrainers);
    int fills = 0;
    for (const Op& op : program.ops()) {
      if (op.type() != "fill" || program.sections()[op.section].name != "backward") continue;
      EXPECT_EQ(op.attributes.number("value"), 1) << text;
      ++fills;
    }
    EXPECT_GT(fills, 0);
  }
}

TEST(ParameterServers, LocalUpdates_BelongToGeo) {
  const auto flags = [](const std::string& text) {
    Strategy strategy = make_strategy(text, kTrainers);
    Program program;
    append_training(program, strategy, {});
    StepInfo info;
    HostStep step{.info = info, .learning_rate = 1, .read = nullptr};
    strategy.before_step(step);
    return info.flags;
  };
  EXPECT_EQ(flags(""), 0u);
  EXPECT_EQ(flags("a_sync: true"), 0u);
  EXPECT_EQ(flags("a_sync_configs { k_steps: 10 }"), 1u);
}

TEST(ParameterServers, SavedVariables_AreThoseOfCollectiveTraining) {
  for (const char* text : {"", "gradient_merge: true gradient_merge_configs { k_steps: 2 }"}) {
    EXPECT_EQ(saved_names(trained_program(text, kTrainers)),
              saved_names(trained_program(text, {.ranks = 4})));
  }
}

TEST(ParameterServers, GradientMerge_UpdatesEveryKSteps) {
  const Program program =
      trained_program("gradient_merge: true gradient_merge_configs { k_steps: 3 }", kTrainers);
  EXPECT_EQ(program.sections()[program.find_section("optimize")].when.every, 3);
}

TEST(ParameterServers, GradientMerge_ZeroesItsSumsAfterAPush) {
  const std::string merge = "gradient_merge: true gradient_merge_configs { k_steps: 3 }";
  const auto fills = [](const Program& program, const std::string& section) {
    return std::ranges::count_if(program.ops(), [&](const Op& op) {
      return op.type() == "fill" && program.sections()[op.section].name == section;
    });
  };
  for (const std::string mode : {"", " a_sync: true"}) {
    const Program program = trained_program(merge + mode, kTrainers);
    ASSERT_GE(program.find_section("pushed"), 0) << mode;
    const Predicate when = program.sections()[program.find_section("pushed")].when;
    EXPECT_TRUE(when.holds({.sync = true}));
    EXPECT_FALSE(when.holds({.step = 2}) || when.holds({.evaluate = true}));
    EXPECT_EQ(fills(program, "pushed"), std::ssize(program.parameters())) << mode;
    EXPECT_EQ(fills(program, "optimize"), 0) << mode;
  }
  // In geo trainers make updates, which zero the sums.
  const Program geo = trained_program(merge + " a_sync_configs { k_steps: 6 }", kTrainers);
  EXPECT_LT(geo.find_section("pushed"), 0);
  EXPECT_EQ(fills(geo, "optimize"), std::ssize(geo.parameters()));
}

TEST(ParameterServers, ModeWithoutServers_IsNamedOnce) {
  const auto log = [](const std::string& text, int rank) {
    return captured_log([&] { make_strategy(text, {.rank = rank, .ranks = 4}); });
  };
  EXPECT_THAT(log("a_sync: true", 0), HasSubstr("--server_num"));
  EXPECT_THAT(log("a_sync_configs { k_steps: 10 }", 0), HasSubstr("a_sync_configs"));
  EXPECT_THAT(log("a_sync: true", 1), IsEmpty());
  EXPECT_THAT(log("a_sync: false a_sync_configs { k_steps: 0 }", 0),
              Not(HasSubstr("--server_num")));
}

TEST(ParameterServers, RefusedFeature_IsNotAlsoSwitchedOff) {
  for (const char* feature : {"localsgd: true", "dgc: true", "adaptive_localsgd: true"}) {
    const std::string log = captured_log([&] {
      const Error error = thrown_by([&] { make_strategy(feature, kTrainers); });
      EXPECT_THAT(error.failure(), HasSubstr("cannot be combined with parameter servers"));
    });
    EXPECT_THAT(log, IsEmpty()) << feature;
  }
}

TEST(ParameterServers, CollectiveJob_IgnoresTheFields) {
  const std::string text = "a_sync: true a_sync_configs { k_steps: 4 use_ps_gpu: 1 }";
  const Program program = trained_program(text, {.ranks = 4});
  EXPECT_THAT(program.flags(), IsEmpty());
  EXPECT_TRUE(program.sections()[program.find_section("optimize")].when.holds({}));
}

TEST(ParameterServers, WhatCannotBeCombined_IsRefusedByName) {
  for (const char* text :
       {"sharding: true", "pipeline: true", "dgc: true", "localsgd: true",
        "adaptive_localsgd: true", "use_hierarchical_allreduce: true", "sync_batch_norm: true",
        "auto: true", "a_sync_configs { use_ps_gpu: 1 }"}) {
    const Error error = thrown_by([&] { make_strategy(text, kTrainers); });
    EXPECT_THAT(error, IsError(ErrorCode::kUnsupported, "strategy")) << text;
    if (std::string(text).find("sync: true") == std::string::npos) continue;
    const std::string name = std::string(text).substr(0, std::string(text).find(':'));
    EXPECT_THAT(error.what(), HasSubstr(name));
  }
}

TEST(ParameterServers, Mode_IsLoggedOnceByRankZero) {
  const auto log_of = [](int rank) {
    return captured_log([&] { make_strategy("", {.rank = rank, .ranks = 4, .servers = 2}); });
  };
  EXPECT_THAT(log_of(0), HasSubstr("mode sync"));
  EXPECT_THAT(log_of(1), Not(HasSubstr("mode sync")));
}

TEST(ParameterServers, FieldsOfGradientSums_HaveNoEffect) {
  const std::string log = captured_log([] {
    const Program program =
        trained_program("fp16_allreduce: true fuse_grad_size_in_MB: 16", kTrainers);
    for (const Op& op : program.ops()) EXPECT_NE(op.type(), "cast");
  });
  EXPECT_THAT(log, HasSubstr("fp16_allreduce has no effect"));
  EXPECT_THAT(log, HasSubstr("fuse_grad_size_in_MB"));
}

}  // namespace
}  // namespace fleet
