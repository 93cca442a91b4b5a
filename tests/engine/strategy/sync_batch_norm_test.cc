#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/captured_log.h"
#include "tests/engine/strategy/strategy_training.h"

namespace fleet {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

struct TrainedWithSync {
  explicit TrainedWithSync(const std::string& text, const PassContext& context = {.ranks = 2},
                           const std::string& model = "resnet20") {
    program = trained_program(text, context, {.model = model, .optimizer = ""});
  }
  int count(const std::string& type) const {
    return static_cast<int>(std::count_if(program.ops().begin(), program.ops().end(),
                                          [&](const Op& op) { return op.type() == type; }));
  }
  Program program;
};

const std::string kSync = "sync_batch_norm: true ";

TEST(SyncBatchNorm, EachNormalisation_SumsInOneMessageEachWay) {
  const TrainedWithSync trained(kSync);
  const Program& program = trained.program;
  const int norms = trained.count("batch_norm_sums");
  EXPECT_GE(norms, 19);
  int sums = 0;
  for (const Op& op : program.ops()) {
    if (op.type() != "all_reduce" || op.stream != 0) continue;
    ++sums;
    EXPECT_EQ(op.inputs.size(), 2u);
    EXPECT_TRUE(op.attributes.boolean("after_previous"));
    EXPECT_EQ(program.groups()[op.attributes.integer("communicator")].name, "batch norm");
  }
  EXPECT_EQ(sums, 2 * norms);
  EXPECT_EQ(trained.count("batch_norm_grad") + trained.count("fused_bn_add_activation_grad"), 0);
  EXPECT_EQ(program.groups().size(), 2u);  // the gradients have one of their own
}

TEST(SyncBatchNorm, EvaluationAndFusions_Stay) {
  const TrainedWithSync plain(""), synced(kSync);
  int evaluated = 0, relus = 0, joins = 0;
  for (const Op& op : synced.program.ops()) {
    if (op.type() == "batch_norm" || op.type() == "fused_bn_add_activation") {
      EXPECT_TRUE(op.attributes.boolean("is_test"));
      ++evaluated;
    }
    if (op.type() != "batch_norm_apply") continue;
    relus += op.attributes.text("activation") == "relu";
    joins += op.inputs[5] != kNoVar;
  }
  EXPECT_EQ(evaluated, synced.count("batch_norm_apply"));
  EXPECT_EQ(joins, 9);   // of blocks
  EXPECT_EQ(relus, 19);  // all but those of the shortcuts' and joins' parts
}

TEST(SyncBatchNorm, OtherCommunicatorsAndGroups_AreOffInPaddlesWords) {
  const std::string line = captured_log([] {
    const TrainedWithSync trained(kSync +
                                      "nccl_comm_num: 3 use_hierarchical_allreduce: true "
                                      "hierarchical_allreduce_inter_nranks: 2",
                                  {.ranks = 4, .nodes = 2});
    ASSERT_EQ(trained.program.groups().size(), 2u);
    for (const RankGroup& group : trained.program.groups()) EXPECT_EQ(group.inner_group_size, 1);
  });
  EXPECT_THAT(line, AllOf(HasSubstr("set num_threads=1, nccl_comm_num=1, "
                                    "hierarchical_allreduce=False."),
                          Not(HasSubstr("different nccl comms"))));
  EXPECT_THAT(captured_log([] { TrainedWithSync trained(kSync); }), Not(HasSubstr("will hang")));
}

TEST(SyncBatchNorm, WhereItCannotAct_IsOffAndSaysWhy) {
  EXPECT_THAT(make_strategy(kSync).names(), Not(Contains("sync_batch_norm")));
  const std::string none = captured_log([] {
    const TrainedWithSync trained(kSync, {.ranks = 2}, "lenet");
    EXPECT_EQ(trained.program.groups().size(), 1u);
  });
  EXPECT_THAT(none, HasSubstr("sync_batch_norm has no effect"));
}

}  // namespace
}  // namespace fleet
