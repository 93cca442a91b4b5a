// Whole networks with and without a fusion: the same loss and gradients, and less memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "exec/backend.h"
#include "exec/executor.h"
#include "models/model.h"
#include "models/network.h"
#include "models/training.h"
#include "tensor/float16.h"
#include "tensor/host.h"
#include "tests/captured_log.h"
#include "tests/engine/strategy/strategy_text.h"

namespace fleet {
namespace {

using testing::HasSubstr;

struct Result {
  std::vector<float> loss;
  std::map<std::string, std::vector<float>> gradients;
  size_t arena = 0;
  int relus = 0, fused = 0;
  std::string captured_log;
};

// Mixed precision computes some gradients in bfloat16.
std::vector<float> as_floats(Executor& executor, VarId id) {
  if (executor.program().var(id).dtype == DType::kFloat32) return executor.values<float>(id);
  std::vector<float> values;
  for (const BFloat16 value : executor.values<BFloat16>(id)) values.push_back(value);
  return values;
}

Result result_of(Program program, VarId loss, const std::map<VarId, std::vector<float>>& images,
                 const std::map<VarId, std::vector<int64_t>>& labels) {
  Result result;
  for (const Op& op : program.ops()) {
    result.relus += op.type() == "relu";
    result.fused += op.type() == "fused_elementwise" ||
                    (op.type() == "conv2d" && op.attributes.text("input_activation") == "relu");
  }
  // The memory of a step in which nothing is kept for the test.
  result.arena = plan_program(program, {loss}).arena_bytes;
  std::vector<VarId> keep = {loss};
  for (VarId id : program.parameters()) keep.push_back(program.gradient(id));
  HostDevice device;
  Executor executor(plan_program(program, keep), device, nullptr);
  executor.initialize(7);
  for (const auto& [id, values] : images) executor.feed(id, values);
  for (const auto& [id, values] : labels) executor.feed(id, values);
  executor.synchronize();
  executor.run({});
  executor.synchronize();
  result.loss = executor.values<float>(loss);
  for (VarId id : program.parameters()) {
    result.gradients[program.var(id).name] = as_floats(executor, program.gradient(id));
  }
  return result;
}

std::vector<float> image_of(int64_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(i * 7919 % 1000) / 500 - 1;
  }
  return values;
}

Result mobilenet(const std::string& build_strategy) {
  const ModelDef& def = model_registry().get("mobilenet_v1");
  Program program;
  const Training training = build_training(
      program,
      {.model = "mobilenet_v1",
       .model_settings = ConfigTree::from_json(R"({"width": 0.25})", "test").validate(def.schema),
       .batch = 4,
       .columns = image_columns({3, 64, 64})});
  std::string line;
  {
    const LogCapture capture;
    make_strategy("build_strategy { " + build_strategy + " }")
        .append_backward(program, training.forward, training.loss);
    line = capture.captured_log();
  }
  Result result = result_of(std::move(program), training.loss,
                            {{training.feed("image"), image_of(4 * 3 * 64 * 64)}},
                            {{training.feed("label"), std::vector<int64_t>{1, 2, 3, 4}}});
  result.captured_log = line;
  return result;
}

// Units as Xception's: relu in front of depthwise convolutions, and a convolution around both,
// whose weight gradient reads what relu does.
Result separable_units(bool fuse) {
  Program program;
  const SectionId forward = program.add_section("forward", {});
  Network network(program, forward, true, kNoVar);
  const VarId image = program.feed("image", DType::kFloat32, {4, 16, 32, 32});
  VarId x = network.conv2d("stem", image, {.channels = 16, .kernel = 1});
  for (int unit = 0; unit < 4; ++unit) {
    const std::string name = "unit" + std::to_string(unit) + ".";
    const VarId y = network.conv2d(name + "depthwise", network.relu(x),
                                   {.channels = 16, .padding = 1, .groups = 16, .bias = true});
    x = network.add(network.conv2d(name + "pointwise", y, {.channels = 16, .kernel = 1}),
                    network.conv2d(name + "around", x, {.channels = 16, .kernel = 1}));
  }
  const VarId loss = program.emit(forward, "mean", {x})[0];
  make_strategy(std::string("build_strategy { fuse_relu_depthwise_conv: ") +
                (fuse ? "true }" : "false }"))
      .append_backward(program, forward, loss);
  return result_of(std::move(program), loss, {{image, image_of(4 * 16 * 32 * 32)}}, {});
}

// A perceptron whose gelu is written out, and whose output is bounded and gated.
Result perceptron(const std::string& strategy) {
  Program program;
  const SectionId forward = program.add_section("forward", {});
  Network network(program, forward, true, kNoVar);
  const VarId image = program.feed("image", DType::kFloat32, {16, 96});
  const auto emit = [&](const char* type, std::vector<VarId> inputs, Attributes attributes = {}) {
    return program.emit(forward, type, std::move(inputs), std::move(attributes))[0];
  };
  VarId x = image;
  for (int layer = 0; layer < 3; ++layer) {
    x = network.linear("fc" + std::to_string(layer), x, {.features = 96});
    const VarId cube = emit("elementwise_mul", {emit("elementwise_mul", {x, x}), x});
    const VarId inner = emit("elementwise_add", {x, emit("scale", {cube}, {{"scale", 0.044715}})});
    const VarId t = emit("tanh", {emit("scale", {inner}, {{"scale", 0.7978845608}})});
    x = emit("elementwise_mul", {x, emit("scale", {t}, {{"scale", 0.5}, {"bias", 0.5}})});
  }
  const VarId gate = network.linear("gate", image, {.features = 96});
  const VarId loss = emit("mean", {emit("elementwise_mul", {x, emit("sigmoid", {gate})})});
  std::string line;
  {
    const LogCapture capture;
    make_strategy(strategy, {.low_types = {DType::kBFloat16}})
        .append_backward(program, forward, loss);
    line = capture.captured_log();
  }
  Result result = result_of(std::move(program), loss, {{image, image_of(16 * 96)}}, {});
  result.captured_log = line;
  return result;
}

void expect_same(const Result& got, const Result& want, double tolerance) {
  EXPECT_NEAR(got.loss[0], want.loss[0], tolerance * std::abs(want.loss[0]));
  ASSERT_EQ(got.gradients.size(), want.gradients.size());
  for (const auto& [name, values] : want.gradients) {
    double largest = 1e-6;
    for (float value : values) largest = std::max<double>(largest, std::abs(value));
    for (size_t i = 0; i < values.size(); ++i) {
      ASSERT_NEAR(got.gradients.at(name)[i], values[i], tolerance * largest) << name;
    }
  }
}

TEST(FuseReluDepthwiseConv, MobilenetWithoutFuseBnAct_TrainsTheSame) {
  const Result apart = mobilenet("fuse_bn_act_ops: false");
  const Result fused = mobilenet("fuse_bn_act_ops: false fuse_relu_depthwise_conv: true");
  EXPECT_EQ(apart.fused, 0);
  EXPECT_EQ(fused.fused, 2 * 13) << "in training and in evaluation";
  EXPECT_EQ(apart.relus - fused.relus, 2 * 13);
  EXPECT_LE(fused.arena, apart.arena);
  EXPECT_THAT(fused.captured_log,
              HasSubstr("---  detected 13 subgraphs (fuse_relu_depthwise_conv)"));
  expect_same(fused, apart, 1e-3);
}

TEST(FuseReluDepthwiseConv, Mobilenet_SaysThatBatchNormHasTheRelus) {
  const Result result = mobilenet("fuse_relu_depthwise_conv: true");
  EXPECT_EQ(result.fused, 0);
  EXPECT_THAT(result.captured_log,
              ::testing::AllOf(HasSubstr("13 relus"), HasSubstr("stay fused")));
}

TEST(FuseReluDepthwiseConv, UnitsWithAWayAround_NeedLessMemory) {
  const Result apart = separable_units(false), fused = separable_units(true);
  EXPECT_EQ(apart.relus - fused.relus, 4);
  EXPECT_EQ(fused.fused, 4);
  // At least the relu outputs of three units, which would be kept until the backward pass.
  const size_t image = 4 * 16 * 32 * 32 * sizeof(float);
  EXPECT_LE(fused.arena + 3 * image, apart.arena);
  std::printf("[   NOTE   ] activations: %zu bytes apart, %zu fused\n", apart.arena, fused.arena);
  expect_same(fused, apart, 1e-5);
}

TEST(EnableAutoFusion, PerceptronOfSmallOperations_TrainsTheSameInLessMemory) {
  const Result apart = perceptron("build_strategy { enable_auto_fusion: false }");
  const Result fused = perceptron("build_strategy { enable_auto_fusion: true }");
  EXPECT_EQ(apart.fused, 0);
  EXPECT_GE(fused.fused, 2 * 3);
  EXPECT_LT(fused.arena, apart.arena * 2 / 3);
  EXPECT_THAT(fused.captured_log, HasSubstr("subgraphs (fuse_elementwise)"));
  EXPECT_EQ(fused.loss, apart.loss);
  EXPECT_EQ(fused.gradients, apart.gradients);
}

TEST(EnableAutoFusion, Unset_FusesNoChains) { EXPECT_EQ(perceptron("").fused, 0); }

TEST(EnableAutoFusion, MixedPrecision_TrainsTheSame) {
  std::string why;
  if (low_precision_types("cpu", &why).empty()) GTEST_SKIP() << why;
  const std::string amp = "amp: true ";
  const Result apart = perceptron(amp + "build_strategy { enable_auto_fusion: false }");
  const Result fused = perceptron(amp + "build_strategy { enable_auto_fusion: true }");
  EXPECT_GE(fused.fused, 2 * 3);
  expect_same(fused, apart, 0.02);
}

}  // namespace
}  // namespace fleet
