#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/captured_log.h"
#include "tests/engine/strategy/strategy_training.h"

namespace fleet {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

struct TrainedWithReduce {
  explicit TrainedWithReduce(const std::string& text, const PassContext& context = {.ranks = 2}) {
    program = trained_program(text, context);
  }
  std::string section(const Op& op) const { return program.sections()[op.section].name; }
  int count(const std::string& type, const std::string& in) const {
    int found = 0;
    for (const Op& op : program.ops()) found += op.type() == type && section(op) == in;
    return found;
  }
  // Those that updates of this section write.
  std::set<VarId> updated(const std::string& in) const {
    std::set<VarId> parameters;
    for (const Op& op : program.ops()) {
      if (op.type() != "momentum" || section(op) != in) continue;
      for (const VarId id : op.outputs) {
        if (id != kNoVar && program.var(id).kind == VarKind::kParameter) parameters.insert(id);
      }
    }
    return parameters;
  }
  Program program;
};

const std::string kReduce = "build_strategy { reduce_strategy: 1 ";

TEST(ReduceMode, EachParameter_IsUpdatedAndSentByItsOwner) {
  std::set<VarId> all;
  std::map<VarId, int64_t> owner;
  std::vector<int64_t> bytes(3);
  for (const int rank : {0, 1, 2}) {
    const TrainedWithReduce trained(kReduce + "}", {.rank = rank, .ranks = 3});
    const Program& program = trained.program;
    for (const VarId id : trained.updated("optimize")) {
      EXPECT_TRUE(all.insert(id).second) << program.var(id).name << " has two owners";
      bytes[rank] += program.var(id).shape.elements() * 4;
    }
    EXPECT_EQ(trained.updated("optimize").size() + trained.updated("update_remote").size(),
              program.parameters().size());
    EXPECT_EQ(trained.count("all_reduce", "backward"), 0);
    for (const Op& op : program.ops()) {
      if (op.type() != "broadcast" || trained.section(op) != "optimize") continue;
      const int64_t root = op.attributes.integer("root");
      EXPECT_EQ(owner.try_emplace(op.inputs[0], root).first->second, root);  // on every rank
      EXPECT_EQ(trained.updated("optimize").contains(op.inputs[0]), root == rank);
    }
    EXPECT_EQ(owner.size(), program.parameters().size());
  }
  EXPECT_EQ(all.size(), owner.size());
  for (const int64_t own : bytes) EXPECT_GT(own, 0);
}

TEST(ReduceMode, Broadcasts_AreOneAnOwnerWhereFused) {
  const TrainedWithReduce apart(kReduce + "}"), fused(kReduce + "fuse_broadcast_ops: true }");
  EXPECT_EQ(apart.count("broadcast", "optimize"),
            static_cast<int>(apart.program.parameters().size()));
  EXPECT_EQ(fused.count("broadcast", "optimize"), 2);
  EXPECT_EQ(fused.count("broadcast", "gather_states"), 2);
  EXPECT_EQ(fused.count("reduce", "backward"), 2);  // one bucket
  EXPECT_EQ(
      TrainedWithReduce("fuse_all_reduce_ops: false " + kReduce + "}").count("reduce", "backward"),
      static_cast<int>(apart.program.parameters().size()));
}

TEST(ReduceMode, InfiniteGradients_AreLookedForOnOwnersAndCombined) {
  std::set<VarId> looked_at;
  for (const int rank : {0, 1}) {
    const TrainedWithReduce trained(
        "amp: true " + kReduce + "}",
        {.rank = rank, .ranks = 2, .low_types = {DType::kBFloat16}, .scale_low_loss = true});
    VarId found_inf = kNoVar;
    int combined = 0;
    for (const Op& op : trained.program.ops()) {
      if (op.type() == "check_finite_and_unscale") {
        found_inf = op.outputs[0];
        for (size_t i = 1; i < op.inputs.size(); ++i) {
          EXPECT_TRUE(looked_at.insert(op.inputs[i]).second) << "on two ranks";
        }
      }
      if (op.type() != "all_reduce") continue;
      EXPECT_EQ(op.inputs, std::vector<VarId>{found_inf});
      EXPECT_EQ(op.attributes.text("op"), "max");
      ++combined;
    }
    EXPECT_EQ(combined, 1);
    EXPECT_GT(trained.count("cast", "optimize"), 0);  // copies of what others updated
  }
  EXPECT_EQ(looked_at.size(), TrainedWithReduce("").program.parameters().size());
}

TEST(ReduceMode, FusedBroadcasts_AreRefusedInPaddlesWordsElsewhere) {
  const std::string line = "Currently, fuse_broadcast_ops only works under Reduce mode.";
  EXPECT_THAT(
      captured_log([] { TrainedWithReduce trained(kReduce + "fuse_broadcast_ops: true }"); }),
      Not(HasSubstr(line)));
  EXPECT_THAT(captured_log(
                  [] { TrainedWithReduce trained("build_strategy { fuse_broadcast_ops: true }"); }),
              HasSubstr(line));
}

TEST(ReduceMode, WhereItCannotAct_IsOffAndSaysWhy) {
  EXPECT_THAT(make_strategy(kReduce + "}").names(), Not(Contains("reduce")));
  const std::string line = captured_log(
      [] { TrainedWithReduce trained("localsgd: true nccl_comm_num: 2 " + kReduce + "}"); });
  EXPECT_THAT(line, AllOf(HasSubstr("reduce_strategy has no effect"),
                          HasSubstr("nccl_comm_num and use_hierarchical_allreduce")));
}

}  // namespace
}  // namespace fleet
