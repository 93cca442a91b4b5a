#include "models/network.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "exec/executor.h"
#include "tensor/host.h"
#include "tests/errors.h"

namespace fleet {
namespace {

using ::testing::AllOf;

class NetworkTest : public testing::Test {
 protected:
  Program program_;
  SectionId forward_ = program_.add_section("forward", {});
  SectionId evaluate_ = program_.add_section("evaluate", {.training = false, .evaluation = true});
  VarId image_ = program_.feed("image", DType::kFloat32, {2, 3, 8, 8});
  VarId key_ = program_.feed("key", DType::kInt64, {2});
  Network training_{program_, forward_, true, key_};
  Network evaluation_{program_, evaluate_, false, kNoVar};
};

TEST_F(NetworkTest, SecondBuild_SharesParametersAndStates) {
  for (Network* network : {&training_, &evaluation_}) {
    network->batch_norm("bn", network->conv2d("conv", image_, {.channels = 4, .padding = 1}));
  }
  EXPECT_EQ(program_.parameters().size(), 3u);
  const Op &a = program_.ops()[1], &b = program_.ops()[3];
  ASSERT_EQ(a.type(), "batch_norm");
  ASSERT_EQ(b.type(), "batch_norm");
  for (int i = 1; i < 5; ++i) EXPECT_EQ(a.inputs[i], b.inputs[i]);
  verify(program_);
}

TEST_F(NetworkTest, BatchNorm_UpdatesItsStatesInTrainingOnly) {
  training_.batch_norm("bn", image_);
  evaluation_.batch_norm("bn", image_);
  const Op &train = program_.ops()[0], &test = program_.ops()[1];
  EXPECT_EQ(train.outputs[1], program_.find("bn.running_mean"));
  EXPECT_EQ(train.outputs[2], program_.find("bn.running_var"));
  EXPECT_EQ(test.outputs[1], kNoVar);
  EXPECT_TRUE(test.attributes.boolean("is_test"));
  EXPECT_FALSE(train.attributes.boolean("is_test"));
}

TEST_F(NetworkTest, SameLayerTwice_IsTheNetworksMistake) {
  training_.conv2d("conv", image_, {.channels = 4});
  EXPECT_THAT(thrown_by([&] { training_.conv2d("conv", image_, {.channels = 4}); }),
              IsUsageError("layer 'conv'"));
}

TEST_F(NetworkTest, SecondBuildWithAnotherShape_IsTheNetworksMistake) {
  training_.conv2d("conv", image_, {.channels = 4});
  EXPECT_THAT(thrown_by([&] { evaluation_.conv2d("conv", image_, {.channels = 5}); }),
              IsUsageError("'conv.weight'"));
}

TEST_F(NetworkTest, UnknownAttribute_ComesWithTheKnownOnes) {
  const auto slice = [&](const char* name) {
    return thrown_by([&] { training_.apply("slice", {image_}, {{name, int64_t{1}}}); });
  };
  EXPECT_THAT(slice("begin"),
              AllOf(IsUsageError("slice 'slice.out'"), Advises("known: axis, end, start")));
  EXPECT_THAT(slice("strat").next(), testing::StartsWith("did you mean 'start'?"));
}

TEST_F(NetworkTest, IntegerWhereANumberIsExpected_IsTaken) {
  training_.apply("scale", {image_}, {{"scale", int64_t{3}}});
  EXPECT_EQ(program_.ops()[0].attributes.number("scale"), 3);
}

TEST_F(NetworkTest, Dropout_IsThereInTrainingOnlyAndNumbered) {
  const VarId x = training_.dropout(image_, 0.5);
  training_.dropout(x, 0.5);
  EXPECT_EQ(training_.dropout(x, 0), x);
  EXPECT_EQ(evaluation_.dropout(image_, 0.5), image_);
  ASSERT_EQ(program_.ops().size(), 2u);
  EXPECT_EQ(program_.ops()[0].attributes.integer("salt"), 0);
  EXPECT_EQ(program_.ops()[1].attributes.integer("salt"), 1);
}

TEST_F(NetworkTest, Groups_DivideTheWeightsInputs) {
  const VarId x = training_.conv2d("a", image_, {.channels = 6, .padding = 1});
  training_.conv2d("b", x, {.channels = 6, .padding = 1, .groups = 6});
  EXPECT_EQ(program_.var(program_.find("b.weight")).shape, (Shape{6, 1, 3, 3}));
}

TEST(Init, Formulas_ArePyTorchs) {
  const Init kaiming = init::kaiming_normal_fan_out({64, 3, 7, 7});
  EXPECT_EQ(kaiming.kind, Init::kNormal);
  EXPECT_DOUBLE_EQ(kaiming.b, std::sqrt(2.0 / (64 * 49)));
  const Init torch = init::torch_default({10, 16, 5, 5});
  EXPECT_EQ(torch.kind, Init::kUniform);
  EXPECT_DOUBLE_EQ(torch.b, 1 / std::sqrt(400.0));
  EXPECT_DOUBLE_EQ(torch.a, -torch.b);
}

// Whole samples are left out or scaled, by their keys; evaluation leaves all as they are.
TEST(NetworkDropPath, Samples_AreZeroOrScaled) {
  constexpr int64_t kSamples = 64, kEach = 18;
  Program program;
  const SectionId forward = program.add_section("forward", {});
  const VarId image = program.feed("image", DType::kFloat32, {kSamples, 2, 3, 3});
  const VarId key = program.feed("key", DType::kInt64, {kSamples});
  Network training(program, forward, true, key), evaluation(program, forward, false, kNoVar);
  EXPECT_EQ(evaluation.drop_path(image, 0.75), image);
  EXPECT_EQ(training.drop_path(image, 0), image);
  const VarId y = training.drop_path(image, 0.75);
  HostDevice device;
  Executor executor(plan_program(program, {y}), device, nullptr);
  executor.initialize(1);
  const std::vector<float> ones(kSamples * kEach, 1);
  std::vector<int64_t> keys(kSamples);
  for (int64_t i = 0; i < kSamples; ++i) keys[i] = 1000 + 17 * (i % 32);
  executor.feed(image, ones);
  executor.feed(key, keys);
  executor.run({});
  const std::vector<float> values = executor.values<float>(y);
  int kept = 0;
  for (int64_t n = 0; n < kSamples; ++n) {
    const float value = values[n * kEach];
    EXPECT_TRUE(value == 0 || value == 4) << value;
    for (int64_t i = 0; i < kEach; ++i) EXPECT_EQ(values[n * kEach + i], value);
    EXPECT_EQ(value, values[n % 32 * kEach]) << "the same key, another fate";
    kept += value != 0;
  }
  EXPECT_GT(kept, 0);
  EXPECT_LT(kept, kSamples / 2);
}

}  // namespace
}  // namespace fleet
