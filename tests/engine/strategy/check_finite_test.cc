#include "optim/check_finite.h"

#include <gmock/gmock.h>

#include "optim/update_op.h"
#include "tests/engine/strategy/strategy_training.h"

namespace fleet {
namespace {

struct Trained {
  explicit Trained(const std::string& text, OnNan on_nan, const PassContext& context = {}) {
    program = trained_program(text, context, {.on_nan = on_nan});
  }
  int count(const std::string& type, const std::string& section) const {
    int found = 0;
    for (const Op& op : program.ops()) {
      found += op.type() == type && program.sections()[op.section].name == section;
    }
    return found;
  }
  // Whether the updates of this section are left out by what the check found.
  bool guarded(const std::string& section) const {
    bool all = true, any = false;
    for (const Op& op : program.ops()) {
      if (op.type() != "momentum" || program.sections()[op.section].name != section) continue;
      const VarId found = op.inputs[kUpdateFoundInf];
      all = all && found != kNoVar && program.var(found).name == "not_finite";
      any = true;
    }
    return any && all;
  }
  Program program;
};

TEST(CheckFinite, Continue_LooksAtNothing) {
  const Trained trained("", OnNan::kContinue);
  EXPECT_EQ(trained.count("check_finite", "optimize"), 0);
  EXPECT_FALSE(trained.guarded("optimize"));
}

TEST(CheckFinite, StopAndSkip_GuardEveryUpdate) {
  for (const OnNan on_nan : {OnNan::kStop, OnNan::kSkip}) {
    const Trained trained("", on_nan);
    EXPECT_EQ(trained.count("check_finite", "optimize"), 1);
    EXPECT_TRUE(trained.guarded("optimize"));
    for (const Op& op : trained.program.ops()) {
      if (op.type() != "check_finite") continue;
      EXPECT_EQ(op.inputs.size(), trained.program.parameters().size() + 2);
    }
  }
}

TEST(CheckFinite, Record_IsNeverSaved) {
  const Trained trained("", OnNan::kStop);
  const VarId record = trained.program.find(kFiniteRecordName);
  ASSERT_NE(record, kNoVar);
  EXPECT_FALSE(is_saved(trained.program.var(record)));
}

TEST(CheckFinite, ScaledLoss_HasACheckOfItsOwn) {
  const Trained trained("amp: true", OnNan::kStop,
                        {.low_types = {DType::kFloat16}, .no_low_type = {}, .backend = "cuda"});
  EXPECT_EQ(trained.count("check_finite", "optimize"), 0);
  EXPECT_EQ(trained.count("check_finite_and_unscale", "optimize"), 1);
}

TEST(CheckFinite, SkippedUpdates_AreCountedUnlessTrainingContinuesAnyway) {
  const PassContext float16{.low_types = {DType::kFloat16}, .no_low_type = {}, .backend = "cuda"};
  const auto counts = [](const Trained& trained) {
    const VarId count = trained.program.find(kSkippedUpdatesName);
    EXPECT_TRUE(count == kNoVar || !is_saved(trained.program.var(count)));
    return trained.count("count_skipped_updates", "optimize");
  };
  EXPECT_EQ(counts(Trained("amp: true", OnNan::kStop, float16)), 1);
  EXPECT_EQ(counts(Trained("amp: true", OnNan::kContinue, float16)), 0);
  const Trained constant("amp: true amp_configs { use_dynamic_loss_scaling: false }", OnNan::kStop,
                         float16);
  EXPECT_EQ(counts(constant), 1);
  for (const Op& op : constant.program.ops()) {
    if (op.type() != "count_skipped_updates") continue;
    EXPECT_EQ(op.inputs[3], kNoVar) << "a constant scale never falls to 1";
  }
  EXPECT_EQ(counts(Trained("", OnNan::kSkip)), 1);
  EXPECT_EQ(counts(Trained("", OnNan::kStop)), 0) << "the first one ends the job";
}

TEST(CheckFinite, ReduceMode_RanksAgree) {
  const Trained trained("build_strategy { reduce_strategy: 1 }", OnNan::kSkip,
                        {.rank = 1, .ranks = 2});
  EXPECT_EQ(trained.count("check_finite", "optimize"), 1);
  EXPECT_EQ(trained.count("all_reduce", "optimize"), 1);
  EXPECT_TRUE(trained.guarded("optimize"));
  for (const Op& op : trained.program.ops()) {
    if (op.type() != "check_finite") continue;
    EXPECT_EQ(trained.program.var(op.inputs[0]).name, kFiniteRecordName);
    EXPECT_LT(op.inputs.size(), trained.program.parameters().size() + 2);
  }
}

// The loss is each rank's own: if one rank alone left out its update, it would drift away.
TEST(CheckFinite, SkipOnSeveralRanks_RanksAgree) {
  for (const OnNan on_nan : {OnNan::kStop, OnNan::kSkip}) {
    const Trained trained("", on_nan, {.rank = 1, .ranks = 2});
    const int agreements = on_nan == OnNan::kSkip ? 1 : 0;  // after kStop nothing follows
    EXPECT_EQ(trained.count("all_reduce", "optimize"), agreements);
    EXPECT_TRUE(trained.guarded("optimize"));
  }
  EXPECT_EQ(Trained("", OnNan::kSkip).count("all_reduce", "optimize"), 0);
}

// A rank of dgc sees its own gradients only: one that left out what others make would drift away.
TEST(CheckFinite, Dgc_LooksWithoutLeavingOutAndRefusesSkip) {
  const std::string dgc = "dgc: true dgc_configs { rampup_begin_step: 0 }";
  const Trained trained(dgc, OnNan::kStop, {.ranks = 2});
  EXPECT_EQ(trained.count("check_finite", "optimize"), 1);
  EXPECT_FALSE(trained.guarded("optimize"));
  try {
    const Trained refused(dgc, OnNan::kSkip, {.ranks = 2});
    FAIL() << "not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    EXPECT_EQ(error.where(), "train.on_nan");
  }
}

}  // namespace
}  // namespace fleet
