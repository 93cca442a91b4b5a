// Strategies as releases of Paddle saved them (golden/make_golden.py): all of them can be read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "tests/said.h"
#include "tests/strategy/strategy_text.h"

namespace fleet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::filesystem::path kFolder =
    std::filesystem::path(FLEET_SOURCE_DIR) / "tests/strategy/golden";

StrategyProto golden(const std::string& name) {
  StrategyProto proto;
  merge_strategy_file(kFolder / (name + ".prototxt"), &proto);
  return proto;
}

std::vector<std::string> golden_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    if (entry.path().extension() == ".prototxt") names.push_back(entry.path().stem());
  }
  std::sort(names.begin(), names.end());
  return names;
}

TEST(PaddlesFiles, OfEachRelease_AreReadAndRunUnlessTheyAskForWhatIsNotThere) {
  const std::vector<std::string> names = golden_names();
  EXPECT_GE(names.size(), 18u);
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    const StrategyProto proto = golden(name);
    if (name.ends_with("_on")) {
      EXPECT_THROW(Strategy(proto, {.ranks = 8, .nodes = 2}), Error);
    } else {
      EXPECT_NO_THROW(Strategy(proto, {.ranks = 8, .nodes = 2}));
    }
  }
}

TEST(PaddlesFiles, Example_SaysWhatItSaid) {
  for (const char* release : {"2.0", "2.1", "2.6.2", "3.3.1"}) {
    SCOPED_TRACE(release);
    const StrategyProto proto = golden(std::string("paddle_") + release + "_example");
    EXPECT_TRUE(proto.amp());
    EXPECT_EQ(proto.amp_configs().init_loss_scaling(), 128);
    EXPECT_EQ(proto.amp_configs().decr_ratio(), 0.5f);
    EXPECT_THAT(proto.amp_configs().custom_white_list(), ElementsAre("conv2d", "matmul_v2"));
    EXPECT_EQ(proto.nccl_comm_num(), 2);
    EXPECT_TRUE(proto.build_strategy().fuse_bn_act_ops());
    EXPECT_TRUE(proto.build_strategy().enable_auto_fusion());
    if (std::string(release) == "3.3.1") continue;  // has no execution strategy
    EXPECT_EQ(proto.execution_strategy().num_threads(), 3);
    EXPECT_EQ(proto.execution_strategy().num_iteration_per_drop_scope(), 100);
  }
}

TEST(PaddlesFiles, BothGenerationsOfSharding_AreRead) {
  EXPECT_EQ(golden("paddle_2.0_on").sharding_configs().fuse_broadcast_mb(), 16);
  EXPECT_EQ(golden("paddle_2.0_on").pipeline_configs().micro_batch(), 12);
  EXPECT_EQ(golden("paddle_2.1_on").sharding_configs().segment_broadcast_mb(), 16);
  EXPECT_EQ(golden("paddle_2.1_on").pipeline_configs().micro_batch_size(), 12);
}

TEST(PaddlesFiles, FieldsOfLaterReleases_ArePassedOverWithALineForDebugging) {
  const std::string log = said([] {
    spdlog::default_logger()->set_level(spdlog::level::debug);
    golden("paddle_3.3.1_copied");
  });
  EXPECT_THAT(log, HasSubstr("passed over, at their defaults"));
  for (const char* field : {"build_strategy.fused_attention", "recompute_configs.enable_tuning",
                            "hybrid_configs.mp_configs.sync_param", "qat_configs.algo"}) {
    EXPECT_THAT(log, HasSubstr(field));
  }
}

// With what the setters copied, nothing of it asked for: one line says what is always so.
TEST(PaddlesFiles, Copied_SaysLittle) {
  const std::string log = said([] { Strategy(golden("paddle_2.6.2_copied")); });
  EXPECT_LE(std::count(log.begin(), log.end(), '\n'), 2) << log;
}

}  // namespace
}  // namespace fleet
