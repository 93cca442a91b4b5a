// A GPU's Plan of ResNet-50, made without a device: the places where layouts change.
#include "exec/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "models/model.h"
#include "models/training.h"
#include "optim/optimizer.h"
#include "tests/engine/strategy/strategy_text.h"

namespace fleet {
namespace {

// The training of fleet-worker on a GPU: bytes are fed.
Plan plan_of_resnet50(const std::string& strategy_text, int ranks = 1) {
  Program program;
  ConfigTree model = ConfigTree::from_json("{}", "test");
  const Training training = build_training(
      program, {.model = "resnet50",
                .model_settings = model.validate(model_registry().get("resnet50").schema),
                .batch = 256,
                .columns = image_columns({3, 224, 224}),
                .bytes = Normalization{{0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}}});
  Strategy strategy = make_strategy(
      strategy_text,
      {.ranks = ranks, .low_types = {DType::kFloat16}, .no_low_type = {}, .backend = "cuda"});
  strategy.append_backward(program, training.forward, training.loss);
  ConfigTree momentum =
      ConfigTree::from_json(R"({"name": "momentum", "weight_decay": 1e-4})", "test");
  strategy.append_optimizer(training.feed("learning_rate"),
                            momentum.validate(optimizer_schema("momentum")));
  return plan_program(
      std::move(program),
      {training.loss, training.training_sum("losses"), training.training_sum("counts"),
       training.evaluation_sum("losses"), training.evaluation_sum("counts")},
      {.backend = "cuda", .initial_layouts = {}, .device = nullptr});
}

// "section name: layout -> layout" of every operation that only moves elements.
std::vector<std::string> reorders(const Plan& plan) {
  std::vector<std::string> found;
  for (const PlannedOp& planned : plan.ops) {
    if (planned.op.type() != "reorder") continue;
    found.push_back(plan.program.sections()[planned.op.section].name + " " +
                    plan.program.var(planned.op.inputs[0]).name + ": " +
                    planned.input_layouts[0].text() + " -> " + planned.output_layouts[0].text());
  }
  return found;
}

int count(const Plan& plan, const std::string& type) {
  return static_cast<int>(
      std::count_if(plan.ops.begin(), plan.ops.end(),
                    [&](const PlannedOp& planned) { return planned.op.type() == type; }));
}

// The image comes in the layout of the first convolution, the low copies of the weights lie like
// their gradients, and so do masters and momentum: the updates meet no other layout.
TEST(CudaPlan, Resnet50InMixedPrecision_MovesNothingForItsLayout) {
  for (const int ranks : {1, 2}) {
    SCOPED_TRACE(testing::Message() << ranks << " ranks");
    const Plan plan = plan_of_resnet50("amp: true", ranks);
    EXPECT_THAT(reorders(plan), testing::IsEmpty());
    EXPECT_EQ(count(plan, "conv2d"), 2 * 53);
    const VarId weight = plan.program.find("conv1.weight");
    ASSERT_NE(weight, kNoVar);
    // Three channels lie as eight.
    for (const VarId id : {weight, plan.program.copy_of(weight)}) {
      EXPECT_EQ(plan.vars[id].layout.elements(), 64 * 7 * 7 * 8);
    }
  }
}

TEST(CudaPlan, Resnet50InFloat32_MovesNothingForItsLayout) {
  EXPECT_THAT(reorders(plan_of_resnet50("")), testing::IsEmpty());
}

// That the tests above can find something.
TEST(CudaPlan, PlainImage_IsMovedOnce) {
  Program program;
  const SectionId forward = program.add_section("forward", {});
  const VarId x = program.feed("x", DType::kFloat32, {2, 8, 4, 4});  // plain
  const VarId weight = program.parameter("w", {8, 8, 3, 3}, {});
  const VarId y = program.emit(forward, "conv2d", {x, weight, kNoVar})[0];
  EXPECT_THAT(reorders(plan_program(program, {y},
                                    {.backend = "cuda", .initial_layouts = {}, .device = nullptr})),
              testing::ElementsAre(testing::HasSubstr("forward x:")));
}

TEST(CudaPlan, ConvolutionWithoutCudnn_IsRefusedWhereNoOtherKernelIs) {
  Program program;
  const SectionId forward = program.add_section("forward", {});
  const VarId x = program.feed("x", DType::kFloat32, {2, 8, 4, 4});
  const VarId weight = program.parameter("w", {8, 8, 3, 3}, {});
  const VarId y = program.emit(forward, "conv2d", {x, weight, kNoVar}, {{"use_cudnn", false}})[0];
  try {
    plan_program(program, {y}, {.backend = "cuda", .initial_layouts = {}, .device = nullptr});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
    EXPECT_THAT(error.what(), testing::HasSubstr("use_cudnn=false"));
  }
}

}  // namespace
}  // namespace fleet
