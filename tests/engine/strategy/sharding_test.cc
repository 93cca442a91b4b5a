#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/captured_log.h"
#include "tests/engine/strategy/strategy_training.h"
#include "tests/errors.h"

namespace fleet {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Not;

struct TrainedWithSharding {
  explicit TrainedWithSharding(const std::string& configs,
                               const PassContext& context = {.ranks = 4},
                               const std::string& more = "") {
    program = trained_program("sharding: true " + more + " sharding_configs { " + configs + " }",
                              context, {.optimizer = R"({"name": "adam"})"});
  }
  std::string section(const Op& op) const { return program.sections()[op.section].name; }
  std::vector<Op> all(const std::string& type, const std::string& in) const {
    std::vector<Op> found;
    for (const Op& op : program.ops()) {
      if (op.type() == type && section(op) == in) found.push_back(op);
    }
    return found;
  }
  // The names of the parameters or states that this rank holds.
  std::set<std::string> held(VarKind kind) const {
    std::set<std::string> names;
    for (VarId id = 0; id < program.var_count(); ++id) {
      const Var& var = program.var(id);
      if (var.kind == kind && var.owner >= 0 && !var.remote) names.insert(var.name);
    }
    return names;
  }
  Program program;
};

TEST(Sharding, EachState_IsOnOneRankOnly) {
  std::set<std::string> all;
  for (int rank = 0; rank < 4; ++rank) {
    const TrainedWithSharding trained("stage: 1", {.rank = rank, .ranks = 4});
    for (const std::string& name : trained.held(VarKind::kState)) {
      EXPECT_TRUE(all.insert(name).second) << name << " is on two ranks";
    }
    EXPECT_TRUE(trained.held(VarKind::kParameter).empty()) << "stage 1 splits states only";
    // Lenet has one parameter that is larger than all others: the last rank owns nothing.
    EXPECT_EQ(trained.all("broadcast", "optimize").size(), 3u);
    EXPECT_TRUE(trained.all("all_reduce", "backward").empty());
    EXPECT_FALSE(trained.program.groups()[0].own_memory);
  }
  EXPECT_EQ(all.size(), 2 * TrainedWithSharding("").program.parameters().size());
}

TEST(Sharding, WithoutAStage_ParametersAreSplitToo) {
  std::set<std::string> all;
  for (int rank = 0; rank < 4; ++rank) {
    const TrainedWithSharding trained("", {.rank = rank, .ranks = 4});
    for (const std::string& name : trained.held(VarKind::kParameter)) {
      EXPECT_TRUE(all.insert(name).second) << name << " is on two ranks";
    }
    EXPECT_TRUE(trained.all("broadcast", "optimize").empty());
    for (const char* section : {"forward", "backward", "evaluate"}) {
      EXPECT_FALSE(trained.all("fetch_parameters", section).empty()) << section;
    }
    for (const Op& op : trained.program.ops()) {
      const Section& section = trained.program.sections()[op.section];
      if (section.remote || op.type() == "fetch_parameters") continue;
      for (const VarId id : op.inputs) {
        EXPECT_TRUE(id == kNoVar || !trained.program.var(id).remote)
            << op.type() << " reads what this rank does not hold";
      }
    }
  }
  EXPECT_EQ(all.size(), TrainedWithSharding("").program.parameters().size());
}

// Neighbours have one owner, so that a segment is few messages.
TEST(Sharding, Owners_AreContiguousAndEven) {
  const TrainedWithSharding trained("");
  int last = 0;
  std::map<int, int64_t> bytes;
  for (const VarId id : trained.program.parameters()) {
    const Var& var = trained.program.var(id);
    EXPECT_GE(var.owner, last);
    last = var.owner;
    bytes[var.owner] += var.shape.elements();
  }
  EXPECT_GE(bytes.size(), 2u);
}

TEST(Sharding, Segments_AreCutBySize) {
  const auto fetches = [](const std::string& configs) {
    std::set<VarId> waits;
    const TrainedWithSharding trained(configs);
    const auto all = trained.all("fetch_parameters", "forward");
    for (const Op& op : all) waits.insert(op.after.begin(), op.after.end());
    return std::pair(all.size(), waits.size());
  };
  const auto one = fetches("segment_broadcast_MB: 32");
  const auto many = fetches("segment_broadcast_MB: 0.0001");
  EXPECT_EQ(one.second, 0u);
  EXPECT_GT(many.first, one.first);
  EXPECT_GT(many.second, 1u);  // they are held back
  EXPECT_EQ(fetches("fuse_broadcast_MB: 0.0001"), many);
}

TEST(Sharding, Groups_SumTheirOwnersGradientsToo) {
  for (const char* configs : {"dp_degree: 2", "hybrid_dp: true sharding_degree: 2",
                              "hybrid_dp: true sharding_group_size: 2"}) {
    const TrainedWithSharding trained(configs, {.rank = 3, .ranks = 4});
    std::vector<std::vector<int>> groups;
    for (const RankGroup& group : trained.program.groups()) groups.push_back(group.ranks);
    EXPECT_THAT(groups, ElementsAre(ElementsAre(2, 3), ElementsAre(1, 3), ElementsAre(0, 1, 2, 3)));
    size_t own = 0;
    for (const Op& op : trained.all("reduce", "backward"))
      own += op.attributes.integer("root") == 1;
    EXPECT_EQ(trained.all("all_reduce", "backward").size(), own);
  }
}

// The groups must leave out the same updates.
TEST(Sharding, InfiniteGradients_AreLookedForInAllGroups) {
  const TrainedWithSharding trained(
      "dp_degree: 2",
      {.rank = 1, .ranks = 4, .low_types = {DType::kBFloat16}, .scale_low_loss = true},
      "amp: true");
  const auto sums = trained.all("all_reduce", "optimize");
  ASSERT_EQ(sums.size(), 1u);
  EXPECT_EQ(sums[0].attributes.text("op"), "max");
  const int64_t group = sums[0].attributes.integer("communicator");
  EXPECT_EQ(trained.program.groups()[group].ranks.size(), 4u);
}

TEST(Sharding, MergedGradients_AreOnTheirOwners) {
  const TrainedWithSharding trained("gradient_merge_acc_step: 4");
  int here = 0, remote = 0;
  for (const VarId id : trained.program.parameters()) {
    const VarId sum = trained.program.find(trained.program.var(id).name + ".merged_gradient");
    ASSERT_NE(sum, kNoVar);
    EXPECT_EQ(trained.program.gradient(id), sum);
    ++(trained.program.var(sum).remote ? remote : here);
  }
  EXPECT_GT(here, 0);
  EXPECT_GT(remote, 0);
  const SectionId optimize = trained.program.find_section("optimize");
  EXPECT_EQ(trained.program.sections()[optimize].when.every, 4);
}

TEST(Sharding, PaddlesChain_IsKeptWhole) {
  const PassContext context{.ranks = 2, .low_types = {DType::kBFloat16}, .optimizer = "adam"};
  const std::string text =
      "sharding: true amp: true recompute: true lamb: true "
      "recompute_configs { checkpoints: 'every block' }";
  for (const char* name : {"sharding", "amp", "recompute", "lamb"}) {
    EXPECT_THAT(make_strategy(text, context).names(), Contains(name));
  }
}

TEST(Sharding, WhatItCannotDo_IsRefusedByName) {
  const auto refusal = [](const std::string& configs) {
    return thrown_by([&] { TrainedWithSharding trained(configs); });
  };
  EXPECT_EQ(refusal("sharding_degree: 8").failure(),
            "sharding_configs.sharding_degree is 8, with 4 ranks");
  EXPECT_EQ(refusal("dp_degree: 2 sharding_degree: 4").next(),
            "set sharding_degree to 2, or remove it");
  for (const char* configs : {"stage: 4", "dp_degree: 3", "hybrid_dp: true",
                              "segment_broadcast_MB: 0", "gradient_merge_acc_step: 0"}) {
    EXPECT_THAT(refusal(configs), IsUsageError("strategy")) << configs;
  }
  for (const char* configs : {"mp_degree: 2", "pp_degree: 2", "optimize_offload: true",
                              "sharding_segment_strategy: 'segment_anchors'"}) {
    EXPECT_THAT(refusal(configs), IsError(ErrorCode::kUnsupported, "strategy")) << configs;
  }
}

TEST(Sharding, OfOneRank_IsOff) {
  EXPECT_THAT(make_strategy("sharding: true").names(), Not(Contains("sharding")));
}

// Degrees of a larger job do not matter.
TEST(Sharding, MergedGradientsOfOneRank_AreStatesOfTheOptimizer) {
  const TrainedWithSharding trained("gradient_merge_acc_step: 4 dp_degree: 2", {});
  for (const VarId id : trained.program.parameters()) {
    const Var& sum = trained.program.var(trained.program.gradient(id));
    EXPECT_TRUE(sum.name.ends_with(".merged_gradient")) << sum.name;
    EXPECT_FALSE(sum.per_rank || sum.remote || sum.owner >= 0) << sum.name;
  }
  const SectionId optimize = trained.program.find_section("optimize");
  EXPECT_EQ(trained.program.sections()[optimize].when.every, 4);
  EXPECT_THAT(thrown_by([] { TrainedWithSharding("gradient_merge_acc_step: 4 stage: 4", {}); }),
              IsUsageError("strategy"));
}

}  // namespace
}  // namespace fleet
