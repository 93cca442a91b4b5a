#include "passes/pipeline_traffic.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "passes/backward.h"

namespace fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

// Three stages of one layer each; the first and the last one share their parameter.
struct ThreeStages {
  ThreeStages() {
    options.forward = program.add_section("forward", {.training = true});
    VarId x = program.feed("x", DType::kFloat32, {8, 64});
    for (const char* name : {"tied", "own", "tied"}) {
      VarId weight = program.find(name);
      if (weight == kNoVar) weight = program.parameter(name, {64, 64}, {});
      x = program.emit(options.forward, "fc", {x, weight, kNoVar}, {}, "y")[0];
      outputs.push_back(x);
    }
    options.loss = program.emit(options.forward, "mean", {x}, {}, "loss")[0];
    mark_stages(program, options.forward, {outputs[0], outputs[1]});
    options.backward = append_backward(program, options.forward, options.loss, 1).section;
    options.stages = 3;
    options.micro_batches = 2;
  }
  PipelineTraffic of_stage(int stage) {
    options.stage = stage;
    return {program, options};
  }
  Program program;
  PipelineOptions options;
  std::vector<VarId> outputs;
};

constexpr PipelineAction kFirst = {PipelineAction::kForward, 0};
constexpr PipelineAction kSecond = {PipelineAction::kForward, 1};

TEST(PipelineTraffic, Activations_GoDownOneStage) {
  ThreeStages net;
  EXPECT_THAT(net.of_stage(0).received(kFirst), IsEmpty());
  EXPECT_THAT(net.of_stage(1).received(kSecond), ElementsAre(net.outputs[0]));
  const PipelineTraffic last = net.of_stage(2);
  EXPECT_THAT(last.received(kFirst), ElementsAre(net.outputs[1]));
  EXPECT_FALSE(last.goes_on(last.values().at(net.outputs[1])));
}

TEST(PipelineTraffic, SharedParameter_PassesTheStagesBetweenOnceAStep) {
  ThreeStages net;
  const VarId tied = net.program.find("tied");
  const PipelineTraffic middle = net.of_stage(1);
  EXPECT_THAT(middle.parameters(kFirst), ElementsAre(Pair(0, tied)));
  EXPECT_TRUE(middle.goes_on(kFirst, 0, tied));
  EXPECT_THAT(middle.parameters(kSecond), IsEmpty());
  EXPECT_FALSE(net.of_stage(2).goes_on(kFirst, 0, tied));
}

TEST(PipelineTraffic, PartOfAGradient_IsSentWithTheLastMicroBatch) {
  ThreeStages net;
  const PipelineTraffic last = net.of_stage(2);
  int parts = 0;
  for (const auto& [id, value] : last.values()) {
    if (!last.is_part(id)) continue;
    ++parts;
    EXPECT_EQ(value.stage, 2);
    EXPECT_FALSE(last.is_sent(id, value, 0));
    EXPECT_TRUE(last.is_sent(id, value, 1));
  }
  EXPECT_EQ(parts, 1);
}

}  // namespace
}  // namespace fleet
