#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/captured_log.h"
#include "tests/engine/strategy/strategy_training.h"
#include "tests/errors.h"

namespace fleet {
namespace {

using ::testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using ::testing::StartsWith;

std::string checkpoints(const std::vector<std::string>& names) {
  std::string text = "recompute: true recompute_configs {";
  for (const std::string& name : names) text += " checkpoints: \"" + name + "\"";
  return text + " }";
}

Program trained_with_recompute(const std::string& text, const std::string& model = "lenet",
                               const PassContext& context = {}, bool updates = false) {
  const std::string optimizer = updates ? TrainingSetup().optimizer : "";
  return trained_program(text, context, {.model = model, .optimizer = optimizer});
}

Program trained_with_updates(const std::string& text, const PassContext& context) {
  return trained_with_recompute(text, "resnet20", context, true);
}

int count(const Program& program, const std::string& section, const std::string& type) {
  int found = 0;
  for (const Op& op : program.ops()) {
    found += op.type() == type && program.sections()[op.section].name == section;
  }
  return found;
}

TEST(Recompute, Blocks_AreComputedAgain) {
  const Program program = trained_with_recompute(checkpoints({"conv1", "conv2"}));
  EXPECT_EQ(count(program, "backward", "conv2d"), 2);
  EXPECT_EQ(count(program, "backward", "fc"), 0) << "behind the last checkpoint";
}

TEST(Recompute, WhatTheBackwardPassDoesNotRead_IsNotComputedAgain) {
  const Program program = trained_with_recompute(checkpoints({"conv1"}));
  EXPECT_EQ(count(program, "forward", "pool2d"), 2);
  EXPECT_EQ(count(program, "backward", "pool2d"), 1) << "its mask is read";
  EXPECT_EQ(count(trained_with_recompute(checkpoints({"fc1"})), "backward", "flatten"), 1);
}

// Tensors between checkpoints are freed at the end of the forward part.
TEST(Recompute, BackwardPass_ReadsOnlyCheckpointsOfTheForwardPart) {
  const Program program = trained_with_recompute(checkpoints({"every block"}), "resnet20");
  std::set<VarId> made, read;
  for (const Op& op : program.ops()) {
    const std::string& section = program.sections()[op.section].name;
    if (section == "forward" && op.type() == "pool2d") break;  // behind the last block
    if (section == "forward") made.insert(op.outputs.begin(), op.outputs.end());
  }
  for (const Op& op : program.ops()) {
    if (program.sections()[op.section].name != "backward") continue;
    for (const VarId id : op.inputs) {
      const bool temporary = id != kNoVar && program.var(id).kind == VarKind::kTemporary;
      if (temporary && made.contains(id)) read.insert(id);
    }
  }
  EXPECT_EQ(read.size(), 9u) << "the last block's output is read by nothing behind it";
}

TEST(Recompute, RunningStatistics_AreWrittenOnce) {
  const Program program = trained_with_recompute(checkpoints({"every block"}), "resnet20");
  std::map<VarId, int> writers;
  for (const Op& op : program.ops()) {
    for (const VarId id : op.outputs) {
      if (id != kNoVar && program.var(id).kind == VarKind::kState) ++writers[id];
    }
  }
  ASSERT_FALSE(writers.empty());
  for (const auto& [id, times] : writers) EXPECT_EQ(times, 1) << program.var(id).name;
}

TEST(Recompute, EveryNBlocks_IsEveryNth) {
  const std::string two =
      captured_log([] { trained_with_recompute(checkpoints({"every 2 blocks"}), "resnet20"); });
  EXPECT_THAT(two, HasSubstr("recompute: 5 segments"));
  EXPECT_THAT(
      captured_log([] { trained_with_recompute(checkpoints({"every block"}), "resnet20"); }),
      HasSubstr("recompute: 10 segments"));
}

TEST(Recompute, Variables_AreCheckpointsToo) {
  const Program program = trained_with_recompute(checkpoints({"relu.out"}));
  EXPECT_EQ(count(program, "backward", "conv2d"), 0) << "the relu's gradient reads its output";
}

std::string recompute_refusal(const std::string& checkpoint, const std::string& more = "") {
  return usage_failure(
      [&] { trained_with_recompute(checkpoints({checkpoint}) + more, "resnet20"); });
}

TEST(Recompute, UnknownCheckpoint_IsNamedWithTheNearestOne) {
  const auto error = [](const std::string& checkpoint) {
    return thrown_by([&] { trained_with_recompute(checkpoints({checkpoint}), "resnet20"); });
  };
  EXPECT_THAT(error("layer1.O"), AllOf(IsUsageError("strategy recompute_configs.checkpoints"),
                                       Advises(StartsWith("did you mean 'layer1.0'?"))));
  for (const char* wrong : {"every 0 blocks", "every  blocks", "every 99 blocks"}) {
    EXPECT_THAT(error(wrong), IsUsageError("strategy recompute_configs.checkpoints")) << wrong;
  }
}

TEST(Recompute, CheckpointThatAFusionTookIn_IsRefused) {
  EXPECT_EQ(recompute_refusal("layer1.0.bn1.out", " build_strategy { fuse_bn_act_ops: false }"),
            "");
  EXPECT_THAT(recompute_refusal("layer1.0.bn1.out", " build_strategy { fuse_bn_act_ops: true }"),
              HasSubstr("a fusion absorbed it"));
}

constexpr char kOffload[] =
    "recompute: true recompute_configs { checkpoints: \"every block\" enable_offload: true }";

TEST(Recompute, Offload_MovesAllCheckpointsButTheLast) {
  const Program program = trained_with_recompute(kOffload, "resnet20", {.host_memory = false});
  EXPECT_EQ(count(program, "forward", "copy_to_host"), 0) << "not before the updates";
  std::string line = captured_log([] { trained_with_updates(kOffload, {.host_memory = false}); });
  EXPECT_THAT(line, HasSubstr("8 of 9 checkpoints"));
}

// Otherwise communication and copies would wait for each other.
TEST(Recompute, Offload_HasAStreamOfItsOwn) {
  const Program program = trained_with_updates(std::string(kOffload) + " nccl_comm_num: 2",
                                               {.ranks = 2, .host_memory = false});
  std::set<int> sums, copies;
  for (const Op& op : program.ops()) {
    if (op.type() == "all_reduce") sums.insert(op.stream);
    if (op.type() == "copy_to_host" || op.type() == "copy_from_host") copies.insert(op.stream);
  }
  EXPECT_EQ(copies.size(), 1u);
  EXPECT_FALSE(sums.contains(*copies.begin()));
  EXPECT_FALSE(copies.contains(0));
}

TEST(Recompute, OffloadOnCpus_HasNoEffectAndSaysSo) {
  EXPECT_THAT(captured_log([] { make_strategy(kOffload); }),
              HasSubstr("enable_offload has no effect on CPUs"));
}

TEST(Recompute, NoCheckpoints_IsOffAndSaysHow) {
  const std::string line = captured_log(
      [] { EXPECT_THAT(make_strategy("recompute: true").names(), Not(Contains("recompute"))); });
  EXPECT_THAT(line, HasSubstr("recompute is switched off: recompute_configs.checkpoints is empty"));
}

}  // namespace
}  // namespace fleet
