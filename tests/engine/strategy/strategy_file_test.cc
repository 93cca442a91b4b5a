#include "strategy/strategy_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "base/error.h"
#include "base/file.h"
#include "tests/errors.h"

namespace fleet {
namespace {

using ::testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

StrategyProto parsed(const std::string& text) {
  StrategyProto proto;
  read_strategy_text(text, "strategy.prototxt", &proto);
  return proto;
}

Error complaint(const std::string& text) {
  return thrown_by([&] { parsed(text); });
}
// At this line and column of the file.
ErrorMatcher IsAt(const std::string& place) { return IsUsageError("strategy.prototxt:" + place); }

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

TEST(StrategyFile, OfWindows_IsRead) {
  const std::string path = ::testing::TempDir() + "strategy_of_windows";
  write_file_atomically(path,
                        "\xEF\xBB\xBF"
                        "mode: COLLECTIVE\r\nsync_nccl_allreduce: false\r\n");
  StrategyProto proto;
  merge_strategy_file(path, &proto);
  EXPECT_FALSE(proto.sync_nccl_allreduce());
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
  add_strategy_file_fields("strategy", &tree);
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
  const Error error = complaint("amp: true\nfuse_all_reduce_op: true\n");
  EXPECT_THAT(error, IsAt("2:1"));
  EXPECT_EQ(error.failure(), "unknown field 'fuse_all_reduce_op'");
  EXPECT_EQ(error.next(), "did you mean 'fuse_all_reduce_ops'?");
}

TEST(StrategyFile, UnknownFieldWithin_NamesTheNearestOfThatMessage) {
  EXPECT_THAT(complaint("build_strategy { fuse_bn_act_op: true }"),
              AllOf(IsAt("1:18"), Advises("did you mean 'build_strategy.fuse_bn_act_ops'?")));
}

TEST(StrategyFile, FieldInTheWrongPlace_IsRefusedWithItsPlace) {
  EXPECT_EQ(complaint("incr_ratio: 2").next(), "did you mean 'amp_configs.incr_ratio'?");
  EXPECT_EQ(complaint("amp_configs { amp: true }").next(), "did you mean 'amp'?");
  EXPECT_EQ(complaint("build_strategy { amp: true }").next(), "did you mean 'amp'?");
  EXPECT_EQ(complaint("sparsty: 0.9").next(), "did you mean 'dgc_configs.sparsity'?");
  EXPECT_EQ(complaint("begin_step: 3").next(),
            "did you mean 'localsgd_configs.begin_step' or "
            "'adaptive_localsgd_configs.begin_step'?");
}

TEST(StrategyFile, MistypedMessage_NamesTheNearest) {
  for (const std::string name :
       {"amp_configs", "gradient_merge_configs", "localsgd_configs", "adaptive_localsgd_configs",
        "dgc_configs", "recompute_configs", "pipeline_configs", "sharding_configs", "lars_configs",
        "lamb_configs", "hybrid_configs", "build_strategy", "execution_strategy"}) {
    const std::string typed = name.substr(0, name.size() - 1);
    EXPECT_THAT(complaint(typed + " { k: 1 }"), Advises("did you mean '" + name + "'?"));
  }
  EXPECT_EQ(complaint("hybrid_configs { dp_degre: 2 }").next(),
            "did you mean 'hybrid_configs.dp_degree'?");
}

TEST(StrategyFile, WrongValue_NamesThePlaceAndWhatItMustBe) {
  EXPECT_THAT(complaint("nccl_comm_num: many"), IsAt("1:16"));
  EXPECT_THAT(complaint("amp: true\n\n  nccl_comm_num: 0"), IsAt("3:18"));
  EXPECT_THAT(complaint("amp: true\n\n  nccl_comm_num: 0").what(),
              HasSubstr("'nccl_comm_num' cannot be 0"));
  EXPECT_THAT(complaint("build_strategy { reduce_strategy: 2 }"), IsAt("1:35"));
  EXPECT_THAT(complaint("thread_num: 3000000000"), IsAt("1:13"));
  EXPECT_THAT(complaint("amp: 3"), IsAt("1:6"));
  EXPECT_THAT(complaint("mode: SOLO"), IsAt("1:7"));
}

TEST(StrategyFile, TextThatIsNone_NamesThePlace) {
  EXPECT_THAT(complaint("amp true"), IsAt("1:5"));
  EXPECT_THAT(complaint("amp true").what(), HasSubstr("expected ':'"));
  EXPECT_THAT(complaint("build_strategy { amp: true"), IsAt("1:18"));
  EXPECT_THAT(complaint("build_strategy { enable_inplace: true"), IsAt("1:38"));
  EXPECT_THAT(complaint("amp: \"x"), IsAt("1:8"));
  EXPECT_THAT(complaint("amp:"), IsAt("1:5"));
  EXPECT_THAT(complaint("}"), IsAt("1:1"));
}

TEST(StrategyFile, FormsOfProtobufsText_AreRead) {
  const StrategyProto proto = parsed(
      "# a comment\n"
      "amp: True, fuse_grad_size_in_TFLOPS: 20.5f; build_strategy: < enable_inplace: 1 >\n"
      "recompute_configs { checkpoints: ['a', 'b' 'c'] checkpoints: \"d\" }\n"
      "hybrid_configs { dp_degree: -1 }");
  EXPECT_TRUE(proto.amp());
  EXPECT_EQ(proto.fuse_grad_size_in_tflops(), 20.5f);
  EXPECT_TRUE(proto.build_strategy().enable_inplace());
  EXPECT_THAT(proto.recompute_configs().checkpoints(), ElementsAre("a", "bc", "d"));
  EXPECT_EQ(proto.hybrid_configs().dp_degree(), -1);
}

TEST(StrategyFile, OneFieldUnderTwoNames_HasOneValue) {
  const std::string same = "thread_num: 3 execution_strategy { num_threads: 3 }";
  EXPECT_EQ(parsed(same).execution_strategy().num_threads(), 3);
  EXPECT_THAT(complaint("thread_num: 3 execution_strategy { num_threads: 4 }").failure(),
              HasSubstr("'execution_strategy.num_threads' and 'thread_num'"));
}

TEST(StrategyFile, LaterField_IsPassedOverAtItsDefaultAndElseNamed) {
  const StrategyProto proto = parsed(
      "build_strategy { fused_attention: false } hybrid_configs { pp_configs { profiling: false } "
      "} "
      "fs_client_param { }");
  EXPECT_EQ(proto.ByteSizeLong(), 0u);
  EXPECT_TRUE(parsed("hybrid_configs {}").has_hybrid_configs());
  EXPECT_THAT(complaint("build_strategy {\n  fused_attention: true\n}"),
              IsError(ErrorCode::kUnsupported, "strategy.prototxt:2:3"));
  EXPECT_THAT(complaint("hybrid_configs { pp_configs { profiling: true } }"),
              IsError(ErrorCode::kUnsupported, "strategy.prototxt:1:31"));
  EXPECT_THAT(complaint("fs_client_param { uri: 'x' }"),
              IsError(ErrorCode::kUnsupported, "strategy.prototxt:1:1"));
}

TEST(StrategyFile, Merge_OverlaysScalarsAndAppendsLists) {
  StrategyProto proto = parsed("fuse_grad_size_in_MB: 16\nrecompute_configs { checkpoints: 'a' }");
  read_strategy_text("fuse_grad_size_in_MB: 8\nrecompute_configs { checkpoints: 'b' }", "second",
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

StrategyProto named(ConfigTree tree) {
  canonicalize_strategy_fields("strategy", &tree);
  add_strategy_file_fields("strategy", &tree);
  return strategy_from(
      tree.validate(Schema().section("strategy", strategy_schema())).section("strategy"));
}

TEST(StrategySection, Text_IsTheFile) {
  const std::string path = testing::TempDir() + "named.prototxt";
  write_file_atomically(path, "fuse_grad_size_in_MB: 12 thread_num: 3");
  const StrategyProto proto =
      named(ConfigTree::from_json("{\"strategy\": \"" + path + "\"}", "job.json"));
  EXPECT_EQ(proto.fuse_grad_size_in_mb(), 12);
  EXPECT_EQ(proto.execution_strategy().num_threads(), 3);
}

TEST(StrategySection, PythonsSpellings_AreTaken) {
  const StrategyProto proto = named(ConfigTree::from_json(
      "{'strategy': {'amp': True, \"a_sync\": \"False\", 'amp_configs': {\"incr_ratio\": 3.0,}}}",
      "job.json"));
  EXPECT_TRUE(proto.amp());
  EXPECT_TRUE(proto.has_a_sync());
  EXPECT_FALSE(proto.a_sync());
  EXPECT_EQ(proto.amp_configs().incr_ratio(), 3);
}

TEST(StrategySection, OneFieldUnderTwoNames_HasOneValue) {
  const auto json = [](const char* threads) {
    return ConfigTree::from_json(
        std::string(R"({"strategy": {"thread_num": 3, "execution_strategy": {"num_threads": )") +
            threads + "}}}",
        "job.json");
  };
  EXPECT_EQ(named(json("3")).execution_strategy().num_threads(), 3);
  EXPECT_THAT(thrown_by([&] { named(json("4")); }), IsUsageError("job.json"));
}

TEST(StrategySection, Range_IsNamed) {
  EXPECT_THAT(thrown_by([] {
                named(ConfigTree::from_json(R"({"strategy": {"thread_num": -1}})", "job.json"));
              }),
              IsUsageError("job.json"));
}

TEST(StrategySection, Nothing_IsAnEmptyStrategy) { EXPECT_EQ(from_json("{}").ByteSizeLong(), 0u); }

TEST(StrategySection, MistypedSection_NamesTheKeyThatIsMeant) {
  EXPECT_EQ(thrown_by([] { from_json(R"({"localsgd_config": {"k_steps": 2}})"); }).next(),
            "did you mean 'localsgd_configs'?");
}

TEST(StrategySection, UnknownKey_NamesTheNearest) {
  EXPECT_EQ(
      thrown_by([] { from_json(R"({"build_strategy": {"fuse_bn_acts_ops": true}})"); }).next(),
      "did you mean 'build_strategy.fuse_bn_act_ops'?");
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
  EXPECT_THAT(thrown_by([] { from_json(R"({"file": "/nowhere/strategy.prototxt"})"); }),
              IsError(ErrorCode::kNotFound, "/nowhere/strategy.prototxt"));
}

TEST(StrategySchema, TellsOwnFieldsFromPaddles) {
  std::map<std::string, std::string> help;
  const Schema schema = strategy_schema();
  for (const ConfigKey& key : schema.keys()) help[key.path] = key.help;
  EXPECT_EQ(help["bf16_allreduce"], "fleetrun's own field");
  EXPECT_EQ(help["fp16_allreduce"], "Paddle's field of this name");
}

}  // namespace
}  // namespace fleet
