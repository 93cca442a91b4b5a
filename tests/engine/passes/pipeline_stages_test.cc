#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/arithmetic.h"
#include "passes/backward.h"
#include "passes/pipeline.h"
#include "tests/errors.h"

namespace fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// An operation that no module knows. It computes much more than it moves.
FLEET_OP(pipeline_stages_test_heavy) {
  def.inputs = {{"x"}};
  def.outputs = {{"y"}};
  def.add_trait<Arithmetic>().operations = [](const Program&, const Op&) { return 1e9; };
  def.infer = [](ShapeContext& context) { context.set_like(0, 0); };
}

// Layers of these many features.
struct Layers {
  explicit Layers(const std::vector<int64_t>& features, bool shared = false) {
    forward = program.add_section("forward", {});
    VarId x = program.feed("x", DType::kFloat32, {8, 64});
    for (size_t i = 0; i < features.size(); ++i) {
      const std::string name = "fc" + std::to_string(shared ? 0 : i);
      const Shape shape = {features[i], program.var(x).shape[1]};
      VarId weight = program.find(name);
      if (weight == kNoVar) weight = program.parameter(name, shape, {});
      x = program.emit(forward, "fc", {x, weight, kNoVar}, {}, "y" + std::to_string(i))[0];
      outputs.push_back(x);
    }
    loss = program.emit(forward, "mean", {x}, {}, "loss")[0];
  }
  std::string names(const std::vector<VarId>& ids) const {
    std::string text;
    for (const VarId id : ids) text += program.var(id).name + " ";
    return text;
  }
  Program program;
  SectionId forward;
  std::vector<VarId> outputs;
  VarId loss;
};

TEST(PipelineStages, BalancedEnds_DivideTheWorkNotTheOperations) {
  Layers even({64, 64, 64, 64});
  EXPECT_EQ(even.names(balanced_ends(even.program, even.forward, 2)), "y1.out ");
  // The first layer does as much as all others together.
  Layers uneven({512, 16, 16, 16, 16});
  EXPECT_EQ(uneven.names(balanced_ends(uneven.program, uneven.forward, 2)), "y0.out ");
  EXPECT_EQ(balanced_ends(even.program, even.forward, 4).size(), 3u);
  EXPECT_TRUE(balanced_ends(even.program, even.forward, 6).empty()) << "five operations";
}

TEST(PipelineStages, BalancedEnds_AskTheOperations) {
  Program program;
  const SectionId forward = program.add_section("forward", {});
  VarId x = program.feed("x", DType::kFloat32, {8, 64});
  for (const char* type : {"pipeline_stages_test_heavy", "relu", "tanh", "relu", "tanh"}) {
    x = program.emit(forward, type, {x}, {}, std::string("y.") + type)[0];
  }
  const std::vector<VarId> ends = balanced_ends(program, forward, 2);
  ASSERT_EQ(ends.size(), 1u);
  EXPECT_EQ(program.var(ends[0]).name, "y.pipeline_stages_test_heavy.out");
}

// The embedding of positions is a parameter that is added, not multiplied.
TEST(PipelineStages, AddedParameters_AreNotProducts) {
  Program program;
  const SectionId forward = program.add_section("forward", {});
  VarId x = program.feed("x", DType::kFloat32, {8, 64});
  const VarId positions = program.parameter("positions", {8, 64}, {});
  x = program.emit(forward, "elementwise_add", {x, positions}, {}, "sum")[0];
  std::vector<VarId> layers;
  for (int i = 0; i < 4; ++i) {
    const std::string name = "fc" + std::to_string(i);
    x = program.emit(forward, "fc", {x, program.parameter(name, {64, 64}, {}), kNoVar}, {},
                     "y" + std::to_string(i))[0];
    layers.push_back(x);
  }
  EXPECT_THAT(balanced_ends(program, forward, 2), ElementsAre(layers[1]));
}

TEST(PipelineStages, Marks_FollowTheEnds) {
  Layers net({4, 4, 4});
  ASSERT_TRUE(are_stage_ends(net.program, net.forward, {net.outputs[0]}));
  mark_stages(net.program, net.forward, {net.outputs[0]});
  const BackwardResult backward = append_backward(net.program, net.forward, net.loss, 1);
  const StageMap stages = find_stages(net.program, backward.section, 2);
  EXPECT_THAT(stages.of_op, ElementsAre(0, 1, 1, 1,        // forward
                                        1, 1, 1, 1, 1, 1,  // d(loss), mean, two gradients a layer
                                        0));               // of the first weight
  EXPECT_EQ(stages.of_var.at(net.program.find("fc0")), 0);
  EXPECT_EQ(stages.of_var.at(net.program.find("fc2")), 1);
}

TEST(PipelineStages, EndsOutOfOrder_AreRefused) {
  Layers net({4, 4, 4});
  EXPECT_FALSE(are_stage_ends(net.program, net.forward, {net.outputs[1], net.outputs[0]}));
  EXPECT_FALSE(are_stage_ends(net.program, net.forward, {net.loss}));
}

TEST(PipelineStages, SharedParameter_BelongsToTheFirstStageThatReadsIt) {
  Layers net({64, 64}, /*shared=*/true);
  ASSERT_TRUE(are_stage_ends(net.program, net.forward, {net.outputs[0]}));
  mark_stages(net.program, net.forward, {net.outputs[0]});
  const BackwardResult backward = append_backward(net.program, net.forward, net.loss, 1);
  const StageMap stages = find_stages(net.program, backward.section, 2);
  EXPECT_EQ(stages.of_var.at(net.program.find("fc0")), 0);
}

// Both stages would change it.
TEST(PipelineStages, SharedState_IsNamed) {
  Program program;
  const SectionId forward = program.add_section("forward", {});
  VarId x = program.parameter("x", {64}, {});
  const VarId state = program.state("state", {64}, {});
  std::vector<VarId> outputs;
  for (int i = 0; i < 2; ++i) {
    x = program.emit(forward, "sum", {x, state}, {}, "y" + std::to_string(i))[0];
    outputs.push_back(x);
  }
  const VarId loss = program.emit(forward, "mean", {x}, {}, "loss")[0];
  mark_stages(program, forward, {outputs[0]});
  const BackwardResult backward = append_backward(program, forward, loss, 1);
  EXPECT_THAT(usage_failure([&] { find_stages(program, backward.section, 2); }),
              HasSubstr("'state' is used in stages 0 and 1"));
}

}  // namespace
}  // namespace fleet
