#include "strategy/strategy_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/error.h"
#include "base/file.h"

namespace fleet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

StrategyProto parsed(const std::string& text) {
  StrategyProto proto;
  merge_strategy_text(text, "strategy.prototxt", &proto);
  return proto;
}

std::string complaint(const std::string& text) {
  try {
    parsed(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    return error.what();
  }
  return "no error";
}

StrategyProto from_json(const std::string& json) {
  return strategy_from(ConfigTree::from_json(json, "job.json").validate(strategy_schema()));
}

TEST(StrategyProto, Defaults_ArePaddles) {
  const StrategyProto proto;
  EXPECT_TRUE(proto.fuse_all_reduce_ops());
  EXPECT_EQ(proto.fuse_grad_size_in_mb(), 32);
  EXPECT_EQ(proto.fuse_grad_size_in_tflops(), 50);
  EXPECT_EQ(proto.fuse_grad_size_in_num(), 8);
  EXPECT_FLOAT_EQ(proto.amp_configs().decr_ratio(), 0.8f);
  EXPECT_TRUE(proto.gradient_merge_configs().avg());
  EXPECT_EQ(proto.hybrid_configs().dp_degree(), -1);
}

TEST(StrategyFile, BothGenerations_AreRead) {
  const StrategyProto proto = parsed(R"(
    mode: COLLECTIVE
    sharding_configs { fuse_broadcast_MB: 16 segment_broadcast_MB: 8 sharding_group_size: 4 }
    pipeline_configs { micro_batch: 3 micro_batch_size: 2 }
    dgc_configs { sparsity: 0.9 sparsity: 0.99 })");
  EXPECT_EQ(proto.sharding_configs().fuse_broadcast_mb(), 16);
  EXPECT_EQ(proto.sharding_configs().segment_broadcast_mb(), 8);
  EXPECT_EQ(proto.sharding_configs().sharding_group_size(), 4);
  EXPECT_EQ(proto.pipeline_configs().micro_batch(), 3);
  EXPECT_THAT(proto.dgc_configs().sparsity(), ElementsAre(0.9f, 0.99f));
}

TEST(StrategyFile, ItsFields_AreInTheTreeBelowWhatIsGiven) {
  const std::string path = testing::TempDir() + "taken.prototxt";
  write_file_atomically(path, R"(
    fuse_grad_size_in_MB: 12 conv_workspace_size_limit: 7
    amp_configs { custom_white_list: "relu" custom_white_list: "mean" incr_ratio: 2.3 dtype: "bfloat16" }
    dgc_configs { sparsity: 0.9 })");
  ConfigTree tree =
      ConfigTree::from_json(R"({"strategy": {"conv_workspace_size_limit": 5}})", "job.json");
  tree.set("strategy.file", path, "--set");
  take_strategy_file("strategy", &tree);
  const Settings settings =
      tree.validate(Schema().section("strategy", strategy_schema())).section("strategy");
  EXPECT_EQ(settings.integer("fuse_grad_size_in_MB"), 12);
  EXPECT_EQ(settings.origin("fuse_grad_size_in_MB"), "strategy.file " + path);
  EXPECT_EQ(settings.integer("conv_workspace_size_limit"), 5);
  EXPECT_EQ(settings.origin("conv_workspace_size_limit"), "job.json");
  EXPECT_THAT(settings.texts("amp_configs.custom_white_list"), ElementsAre("relu", "mean"));
  EXPECT_EQ(settings.text("amp_configs.dtype"), "bfloat16");
  EXPECT_FALSE(settings.given("amp_configs.decr_ratio"));
  const StrategyProto proto = strategy_from(settings);
  EXPECT_EQ(proto.amp_configs().incr_ratio(), 2.3f);
  EXPECT_EQ(proto.amp_configs().custom_white_list_size(), 2);
  EXPECT_THAT(proto.dgc_configs().sparsity(), ElementsAre(0.9f));
}

TEST(StrategyFile, UnknownField_NamesTheNearestAndThePlace) {
  const std::string what = complaint("amp: true\nfuse_all_reduce_op: true\n");
  EXPECT_THAT(what, HasSubstr("unknown field 'fuse_all_reduce_op'"));
  EXPECT_THAT(what, HasSubstr("did you mean 'fuse_all_reduce_ops'?"));
  EXPECT_THAT(what, HasSubstr("strategy.prototxt:2:"));
}

TEST(StrategyFile, UnknownFieldWithin_NamesTheNearestOfThatMessage) {
  const std::string what = complaint("build_strategy { fuse_bn_act_op: true }");
  EXPECT_THAT(what, HasSubstr("unknown field 'fuse_bn_act_op'"));
  EXPECT_THAT(what, HasSubstr("did you mean 'fuse_bn_act_ops'?"));
}

TEST(StrategyFile, WrongValue_NamesThePlace) {
  EXPECT_THAT(complaint("nccl_comm_num: many"), HasSubstr("strategy.prototxt:1:"));
}

TEST(StrategyFile, Merge_OverlaysScalarsAndAppendsLists) {
  StrategyProto proto = parsed("fuse_grad_size_in_MB: 16\nrecompute_configs { checkpoints: 'a' }");
  merge_strategy_text("fuse_grad_size_in_MB: 8\nrecompute_configs { checkpoints: 'b' }", "second",
                      &proto);
  EXPECT_EQ(proto.fuse_grad_size_in_mb(), 8);
  EXPECT_THAT(proto.recompute_configs().checkpoints(), ElementsAre("a", "b"));
}

TEST(StrategySection, Keys_SetTheirFieldsAndNoOthers) {
  const StrategyProto proto = from_json(R"({
    "fuse_grad_size_in_MB": 16, "fuse_grad_size_in_TFLOPS": 20, "mode": "PS",
    "build_strategy": {"fuse_bn_act_ops": false},
    "dgc_configs": {"sparsity": [0.9, 0.99]}, "recompute_configs": {"checkpoints": ["x"]}})");
  EXPECT_EQ(proto.fuse_grad_size_in_mb(), 16);
  EXPECT_EQ(proto.fuse_grad_size_in_tflops(), 20);
  EXPECT_EQ(proto.mode(), paddle::fleet::PS);
  EXPECT_TRUE(proto.build_strategy().has_fuse_bn_act_ops());
  EXPECT_FALSE(proto.build_strategy().has_fuse_elewise_add_act_ops());
  EXPECT_FALSE(proto.has_fuse_all_reduce_ops());
  EXPECT_FALSE(proto.has_amp_configs());
  EXPECT_THAT(proto.dgc_configs().sparsity(), ElementsAre(0.9f, 0.99f));
  EXPECT_THAT(proto.recompute_configs().checkpoints(), ElementsAre("x"));
}

TEST(StrategySection, Nothing_IsAnEmptyStrategy) { EXPECT_EQ(from_json("{}").ByteSizeLong(), 0u); }

TEST(StrategySection, UnknownKey_NamesTheNearest) {
  try {
    from_json(R"({"build_strategy": {"fuse_bn_acts_ops": true}})");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("build_strategy.fuse_bn_act_ops"));
  }
}

TEST(StrategySection, File_IsReadAndKeysGoOverIt) {
  const std::string path = testing::TempDir() + "strategy_file_test.prototxt";
  std::ofstream(path) << "fuse_grad_size_in_MB: 16\nfuse_all_reduce_ops: false\n"
                         "dgc_configs { sparsity: 0.5 }\n";
  const StrategyProto proto = from_json("{\"file\": \"" + path +
                                        "\", \"fuse_grad_size_in_MB\": 8,"
                                        " \"dgc_configs\": {\"sparsity\": [0.9]}}");
  EXPECT_EQ(proto.fuse_grad_size_in_mb(), 8);
  EXPECT_FALSE(proto.fuse_all_reduce_ops());
  EXPECT_THAT(proto.dgc_configs().sparsity(), ElementsAre(0.9f));
}

TEST(StrategySection, MissingFile_IsNotFound) {
  try {
    from_json(R"({"file": "/nowhere/strategy.prototxt"})");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("/nowhere/strategy.prototxt"));
  }
}

}  // namespace
}  // namespace fleet
