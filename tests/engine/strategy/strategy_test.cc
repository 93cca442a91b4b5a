#include "strategy/strategy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "strategy/meta/all_reduce.h"
#include "tests/captured_log.h"
#include "tests/engine/strategy/strategy_training.h"
#include "tests/errors.h"

namespace fleet {
namespace {

using testing::HasSubstr;

using testing::Contains;
using testing::IsSupersetOf;
using testing::Not;

AllReduceSettings checked_strategy(const std::string& text) {
  return check_all_reduce(strategy_proto(text), {});
}

Error strategy_refusal(const std::string& text) {
  return thrown_by([&] { make_strategy(text); });
}

TEST(CheckStrategy, Empty_FusesWithPaddlesLimits) {
  const AllReduceSettings sums = checked_strategy("");
  EXPECT_TRUE(sums.fuse);
  EXPECT_EQ(sums.buckets.megabytes, 32);
  EXPECT_EQ(sums.buckets.count, 50);
  EXPECT_EQ(sums.buckets.exact_count, 0);
  EXPECT_THAT(Strategy().names(),
              IsSupersetOf({"fuse_bn_act", "fuse_elewise_add_act", "fuse_bn_add_act",
                            "enable_auto_fusion", "fuse_all_optimizer_ops"}));
}

TEST(CheckStrategy, GivenFields_AreTaken) {
  const AllReduceSettings sums = checked_strategy(
      "fuse_all_reduce_ops: false fuse_grad_size_in_MB: 16 fuse_grad_size_in_TFLOPS: 20");
  EXPECT_FALSE(sums.fuse);
  EXPECT_EQ(sums.buckets.megabytes, 16);
  EXPECT_EQ(sums.buckets.count, 20);
  const Strategy strategy = make_strategy(R"(
    build_strategy { fuse_bn_act_ops: false fuse_elewise_add_act_ops: false
                     fuse_bn_add_act_ops: false enable_auto_fusion: false
                     fuse_all_optimizer_ops: false debug_graphviz_path: "a.dot" })");
  for (const char* name : {"fuse_bn_act", "fuse_elewise_add_act", "fuse_bn_add_act",
                           "enable_auto_fusion", "fuse_all_optimizer_ops"}) {
    EXPECT_THAT(strategy.names(), Not(Contains(name)));
  }
  EXPECT_THAT(strategy.names(), Contains("debug_graphviz_path"));
}

TEST(CheckStrategy, NumberOfGradients_TakesTheOtherLimitsPlace) {
  EXPECT_EQ(checked_strategy("fuse_grad_size_in_num: 8").buckets.exact_count, 8);
  EXPECT_THAT(strategy_refusal("fuse_grad_size_in_num: 4 fuse_grad_size_in_MB: 16"),
              IsUsageError("strategy"));
  EXPECT_THAT(strategy_refusal("fuse_grad_size_in_num: 0"), IsUsageError("strategy"));
}

TEST(CheckStrategy, LimitsCopiedAtTheirDefaults_DoNotCollide) {
  const std::string copied =
      "fuse_grad_size_in_MB: 32 fuse_grad_size_in_TFLOPS: 50 last_comm_group_size_MB: 1 ";
  EXPECT_EQ(checked_strategy(copied + "fuse_grad_size_in_num: 8").buckets.exact_count, 0);
  EXPECT_EQ(checked_strategy(copied + "fuse_grad_size_in_num: 8").buckets.last_megabytes, 0);
  EXPECT_EQ(checked_strategy(copied + "fuse_grad_size_in_num: 4").buckets.exact_count, 4);
  EXPECT_EQ(checked_strategy("fuse_grad_size_in_MB: 16 fuse_grad_size_in_num: 8").buckets.megabytes,
            16);
}

AllReduceSettings sums_for(const std::string& text, const PassContext& context,
                           std::string* captured_log = nullptr) {
  const LogCapture capture;
  const AllReduceSettings result = check_all_reduce(strategy_proto(text), context);
  if (captured_log) *captured_log = capture.captured_log();
  return result;
}

TEST(CheckStrategy, LastBucket_IsSmallOnlyWhereItIsAskedFor) {
  EXPECT_EQ(checked_strategy("").buckets.last_megabytes, 0);
  EXPECT_EQ(checked_strategy("last_comm_group_size_MB: 2").buckets.last_megabytes, 2);
  EXPECT_THAT(strategy_refusal("fuse_grad_size_in_num: 4 last_comm_group_size_MB: 2"),
              IsUsageError("strategy"));
}

TEST(AllReduceSettings, Defaults_AreOneCommunicatorInOrder) {
  const AllReduceSettings result = sums_for("", {.ranks = 4, .nodes = 2});
  EXPECT_EQ(result.communicators, 1);
  EXPECT_TRUE(result.one_after_another);
  EXPECT_EQ(result.group_size, 1);
}

TEST(AllReduceSettings, SeveralCommunicatorsInOrder_HintsThatTheyCannotOverlap) {
  std::string captured_log;
  EXPECT_EQ(sums_for("nccl_comm_num: 2", {.ranks = 2}, &captured_log).communicators, 2);
  EXPECT_THAT(captured_log,
              HasSubstr("nccl_comm_num > 1, you may need to set sync_nccl_allreduce=False to "
                        "ensure that different nccl comms can overlap"));
  const AllReduceSettings free =
      sums_for("nccl_comm_num: 2 sync_nccl_allreduce: false", {.ranks = 2}, &captured_log);
  EXPECT_FALSE(free.one_after_another);
  EXPECT_EQ(captured_log, "");
}

TEST(AllReduceSettings, OneCommunicator_HasNothingToOverlapAndSaysSo) {
  const auto line = [](const char* text, int ranks) {
    return captured_log([&] { make_strategy(text, {.ranks = ranks}); });
  };
  EXPECT_THAT(line("sync_nccl_allreduce: false", 2),
              HasSubstr("sync_nccl_allreduce has no effect with one communicator"));
  EXPECT_EQ(line("sync_nccl_allreduce: true", 2), "");
  EXPECT_EQ(line("sync_nccl_allreduce: false nccl_comm_num: 2", 2), "");
  EXPECT_EQ(line("sync_nccl_allreduce: false", 1), "");
}

TEST(AllReduceSettings, OneRank_HasOneCommunicator) {
  std::string captured_log;
  EXPECT_EQ(sums_for("nccl_comm_num: 3", {}, &captured_log).communicators, 1);
  EXPECT_THAT(captured_log, HasSubstr("set nccl_comm_num=1 since you only have 1 node."));
}

TEST(AllReduceSettings, GroupsOnOneNode_AreOffWithAWarning) {
  const std::string text =
      "use_hierarchical_allreduce: true hierarchical_allreduce_inter_nranks: 4";
  std::string captured_log;
  EXPECT_EQ(sums_for(text, {.ranks = 8, .nodes = 1}, &captured_log).group_size, 1);
  EXPECT_THAT(captured_log,
              HasSubstr("set hierachical_allreduce=False since you only have 1 node."));
  EXPECT_EQ(sums_for(text, {.ranks = 8, .nodes = 2}, &captured_log).group_size, 4);
  EXPECT_EQ(captured_log, "");
  // All ranks are stages of one pipeline.
  EXPECT_EQ(sums_for(text, {.ranks = 1, .nodes = 2}, &captured_log).group_size, 1);
  EXPECT_THAT(captured_log, HasSubstr("use_hierarchical_allreduce has no effect"));
}

TEST(AllReduceSettings, ImpossibleValues_AreRefused) {
  const PassContext context{.ranks = 8, .nodes = 2};
  for (const char* text :
       {"nccl_comm_num: 0", "use_hierarchical_allreduce: true",
        "use_hierarchical_allreduce: true hierarchical_allreduce_inter_nranks: 3",
        "use_hierarchical_allreduce: true hierarchical_allreduce_inter_nranks: 8"}) {
    EXPECT_THROW(sums_for(text, context), Error) << text;
  }
}

TEST(AllReduceSettings, GroupSizeWithoutGroups_IsSaidToHaveNoEffect) {
  std::string captured_log;
  sums_for("hierarchical_allreduce_inter_nranks: 4", {.ranks = 8, .nodes = 2}, &captured_log);
  EXPECT_THAT(captured_log, HasSubstr("hierarchical_allreduce_inter_nranks has no effect"));
}

TEST(CheckStrategy, PersistentBatchNorm_IsSaidToHaveNoEffect) {
  for (const char* value : {"true", "false"}) {
    const LogCapture capture;
    make_strategy(std::string("cudnn_batchnorm_spatial_persistent: ") + value);
    EXPECT_EQ(capture.captured_log().find("cudnn_batchnorm_spatial_persistent has no effect") !=
                  std::string::npos,
              value == std::string("true"));
  }
}

TEST(CheckStrategy, Unsupported_IsRefusedByName) {
  const Error error = strategy_refusal(
      "tensor_parallel: true asp: true build_strategy { fuse_gemm_epilogue: true }");
  EXPECT_THAT(error, IsError(ErrorCode::kUnsupported, "strategy"));
  EXPECT_EQ(error.failure(),
            "not supported yet: tensor_parallel, asp, build_strategy.fuse_gemm_epilogue");
  for (const char* text :
       {"gradient_scale_configs { scale_strategy: 'sum' }",
        "tensor_parallel: true tensor_parallel_configs { tensor_parallel_degree: 2 }"}) {
    EXPECT_THAT(strategy_refusal(text), IsError(ErrorCode::kUnsupported, "strategy")) << text;
  }
}

TEST(CheckStrategy, HybridDegrees_AreTheJobsOwn) {
  const auto accepted = [](const std::string& degrees, const PassContext& context,
                           const std::string& more = "") {
    return make_strategy("hybrid_configs { " + degrees + " } " + more, context);
  };
  EXPECT_NO_THROW(
      accepted("dp_degree: 4 mp_degree: 1 pp_degree: 1 sharding_degree: 1", {.ranks = 4}));
  EXPECT_NO_THROW(accepted("dp_degree: 1", {.ranks = 1}));
  EXPECT_NO_THROW(accepted("dp_degree: -1", {.ranks = 4}));
  const std::string stages = "pipeline: true pipeline_configs { stages: 2 }";
  EXPECT_NO_THROW(accepted("dp_degree: 2 pp_degree: 2", {.ranks = 4}, stages));
  for (const char* wrong : {"dp_degree: 2", "mp_degree: 2", "pp_degree: 2", "sharding_degree: 4"}) {
    const Error error = thrown_by([&] { accepted(wrong, {.ranks = 4}); });
    EXPECT_THAT(error, IsError(ErrorCode::kUnsupported, "strategy"));
    EXPECT_THAT(error.failure(),
                HasSubstr(std::string("hybrid_configs.") + std::string(wrong).substr(0, 9)));
  }
  EXPECT_THAT(thrown_by([&] { accepted("dp_degree: 2", {.ranks = 4}); }).next(), HasSubstr("to 4"));
  EXPECT_THAT(thrown_by([&] { accepted("dp_degree: 0", {.ranks = 4}); }), IsUsageError("strategy"));
}

TEST(CheckStrategy, DefaultsWrittenOut_AreNotRefused) {
  EXPECT_NO_THROW(
      make_strategy("amp: false nccl_comm_num: 1 a_sync: true sync_nccl_allreduce: true "
                    "gradient_scale_configs { scale_strategy: 'avg' } hybrid_configs {} "
                    "execution_strategy { num_threads: 1 }"));
}

TEST(CheckStrategy, ConfigurationOfWhatIsOff_HasNoEffect) {
  const std::string line = captured_log([] {
    EXPECT_NO_THROW(
        make_strategy("localsgd_configs { k_steps: 4 } recompute_configs { checkpoints: 'a' } "
                      "dgc_configs { rampup_step: 1 }"));
  });
  EXPECT_THAT(line, HasSubstr("localsgd_configs has no effect"));
  EXPECT_THAT(line, HasSubstr("recompute_configs has no effect"));
  EXPECT_THAT(line, Not(HasSubstr("dgc_configs")));  // at its default
}

Program applied(const std::string& text, int ranks, const std::string& model = "resnet18") {
  return trained_program(text, {.ranks = ranks}, {.model = model});
}

int count_ops(const Program& program, const std::string& type) {
  int found = 0;
  for (const Op& op : program.ops()) found += op.type() == type;
  return found;
}

TEST(ApplyStrategy, Resnet_HasNoActivationsOfItsOwn) {
  const Program program = applied("", 2);
  EXPECT_EQ(count_ops(program, "relu"), 0);
  EXPECT_GT(count_ops(program, "all_reduce"), 0);
}

// The log names the fusions for users. Those of the evaluation are not counted.
TEST(ApplyStrategy, Resnet50_SaysWhatItFused) {
  const LogCapture capture;
  applied("", 2, "resnet50");
  EXPECT_THAT(capture.captured_log(), HasSubstr("---  detected 33 subgraphs (fuse_bn_act)"));
  EXPECT_THAT(capture.captured_log(),
              HasSubstr("---  detected 16 subgraphs (fuse_elewise_add_act)"));
  EXPECT_THAT(capture.captured_log(), HasSubstr("---  detected 16 subgraphs (fuse_bn_add_act)"));
}

TEST(ApplyStrategy, FusionsOff_KeepsActivations) {
  const Program program = applied(
      "build_strategy { fuse_bn_act_ops: false fuse_elewise_add_act_ops: false "
      "fuse_bn_add_act_ops: false }",
      1);
  EXPECT_EQ(count_ops(program, "relu"), 2 * 17);  // training and evaluation
  EXPECT_EQ(count_ops(program, "all_reduce"), 0);
}

TEST(ApplyStrategy, LossGradient_IsOneOverRanks) {
  const Program program = applied("", 4, "mlp");
  for (const Op& op : program.ops()) {
    if (op.type() != "fill") continue;
    EXPECT_EQ(op.attributes.number("value"), 0.25);
  }
  EXPECT_GE(count_ops(program, "fill"), 1);
}

TEST(ApplyStrategy, GraphvizPath_GetsTheProgram) {
  const std::string path = testing::TempDir() + "strategy_test.dot";
  const Program program =
      applied("build_strategy { debug_graphviz_path: '" + path + "' }", 2, "mlp");
  EXPECT_EQ(read_file(path), print_dot(program));
  try {
    applied("build_strategy { debug_graphviz_path: '" + testing::TempDir() + "' }", 2, "mlp");
    ADD_FAILURE() << "a folder was written to";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage) << error.what();
  }
}

TEST(ApplyStrategy, SameInput_GivesTheSameText) {
  EXPECT_EQ(print_text(applied("", 2)), print_text(applied("", 2)));
}

}  // namespace
}  // namespace fleet
