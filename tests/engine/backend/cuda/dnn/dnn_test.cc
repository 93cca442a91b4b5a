#include "backend/cuda/dnn.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "base/error.h"
#include "tests/engine/backend/cuda/dnn/convolutions.h"
#include "tests/engine/backend/cuda/dnn/gpus.h"

namespace fleet::cuda::dnn {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr DType kTypes[] = {DType::kFloat32, DType::kFloat16, DType::kBFloat16};

const Target& h200() {
  static const Target target(h200_properties());
  return target;
}

TEST(EngineChoice, Text_IsReadBack) {
  const EngineChoice choice{.engine = 62, .knobs = {{2, 1}, {13, 0}, {27, -8}}};
  EXPECT_EQ(choice.text(), "engine 62 knobs 2=1 13=0 27=-8");
  EXPECT_EQ(EngineChoice::parse(choice.text()), choice);
  EXPECT_EQ(EngineChoice::parse("engine 3 knobs"), EngineChoice{.engine = 3});
}

TEST(EngineChoice, Damaged_IsNone) {
  for (const char* text :
       {"", "engine", "engine 3", "engine x knobs", "engine -1 knobs", "engine 3 knobs 2",
        "engine 3 knobs 2=", "engine 3 knobs 2=1x", "motor 3 knobs 2=1"}) {
    EXPECT_FALSE(EngineChoice::parse(text)) << text;
  }
}

TEST(Target, DamagedProperties_AreAnError) {
  EXPECT_THROW(Target("{}"), Error);
  EXPECT_THROW(Target("no JSON"), Error);
}

TEST(DnnCheck, Status_BecomesOneError) {
  try {
    fleet::cuda::check(CUDNN_STATUS_NOT_SUPPORTED, "conv2d of x");
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
    EXPECT_THAT(error.what(), HasSubstr("conv2d of x"));
    EXPECT_THAT(error.what(), HasSubstr("CUDNN_STATUS_NOT_SUPPORTED"));
  }
  EXPECT_THROW(fleet::cuda::check(CUDNN_STATUS_EXECUTION_FAILED, "x"), Error);
  EXPECT_NO_THROW(fleet::cuda::check(CUDNN_STATUS_SUCCESS, "x"));
}

TEST(DnnPlans, Resnet50_HasDeterministicOnesWithinTheLimitInEveryType) {
  for (DType dtype : kTypes) {
    const std::vector<Convolution> all = convolutions("resnet50", 256, dtype);
    EXPECT_GT(all.size(), 50u);
    for (const Convolution& conv : all) {
      const Graph graph = make_graph(conv);
      const PlanLimits limits{.workspace = 512u << 20, .deterministic = true};
      const auto plans = candidate_plans(graph, h200(), limits, 1);
      ASSERT_EQ(plans.size(), 1u) << conv.text();
      EXPECT_LE(plans[0]->workspace(), limits.workspace) << conv.text();
    }
  }
}

TEST(DnnPlans, Float32WithoutTensorOpMath_IsExact) {
  for (const Convolution& conv : convolutions("resnet50", 32, DType::kFloat32)) {
    const PlanLimits limits{.workspace = 512u << 20, .exact_float32 = true};
    EXPECT_EQ(candidate_plans(make_graph(conv), h200(), limits, 1).size(), 1u) << conv.text();
  }
}

TEST(DnnPlans, MobilenetAndLenet_HaveOnes) {
  for (const char* model : {"mobilenet_v1", "lenet"}) {
    for (DType dtype : kTypes) {
      for (const Convolution& conv : convolutions(model, 32, dtype)) {
        const auto plans = candidate_plans(make_graph(conv), h200(), {.workspace = 512u << 20}, 1);
        EXPECT_EQ(plans.size(), 1u) << conv.text();
      }
    }
  }
}

// Shapes of ops/conv2d_test.cc, which a GPU runs with both limits at once.
TEST(DnnPlans, OddShapes_HaveExactDeterministicOnes) {
  struct Odd {
    Shape x, weight;
    Window window;
  };
  const Window same{{3, 3}, {1, 1}, {1, 1}, {1, 1}}, inner{{3, 3}, {1, 1}, {0, 0}, {1, 1}};
  const Odd shapes[] = {
      {{2, 17, 5, 4}, {20, 17, 1, 1}, {{1, 1}, {1, 1}, {0, 0}, {1, 1}}},
      {{2, 20, 3, 2}, {17, 20, 3, 3}, same},
      {{1, 3, 9, 8}, {16, 3, 7, 7}, {{7, 7}, {2, 2}, {3, 3}, {1, 1}}},
      {{2, 1, 8, 8}, {6, 1, 5, 5}, {{5, 5}, {1, 1}, {2, 2}, {1, 1}}},
      {{2, 10, 5, 5}, {17, 10, 3, 3}, same},
      {{2, 5, 9, 6}, {4, 5, 3, 2}, {{3, 2}, {2, 1}, {1, 0}, {1, 1}}},
      {{1, 16, 4, 4}, {16, 16, 3, 3}, {{3, 3}, {3, 2}, {0, 0}, {1, 1}}},
      {{1, 16, 4, 4}, {16, 16, 3, 3}, {{3, 3}, {1, 1}, {2, 2}, {2, 2}}},
      {{1, 3, 9, 9}, {5, 3, 3, 3}, {{3, 3}, {1, 1}, {0, 0}, {3, 2}}},
      {{1, 32, 3, 3}, {32, 16, 3, 3}, same},
      {{1, 20, 4, 4}, {40, 5, 3, 3}, same},
      {{2, 6, 5, 5}, {4, 3, 3, 3}, inner},
      {{1, 10, 5, 5}, {20, 1, 3, 3}, inner},
  };
  for (DType dtype : kTypes) {
    const PlanLimits limits{
        .workspace = 512u << 20, .deterministic = true, .exact_float32 = dtype == DType::kFloat32};
    for (Odd odd : shapes) {
      std::copy_n(odd.window.paddings, 2, odd.window.ends);
      const int64_t block = channel_block(odd.x[1], odd.x[1] / odd.weight[1], dtype);
      Convolution conv{.window = odd.window,
                       .x = stored(odd.x, block),
                       .weight = stored(odd.weight, block),
                       .y = {odd.x[0], odd.weight[0], windows(odd.window, 0, odd.x[2]),
                             windows(odd.window, 1, odd.x[3])},
                       .dtype = dtype};
      for (auto direction : {Convolution::kForward, Convolution::kData, Convolution::kWeight}) {
        conv.direction = direction;
        EXPECT_EQ(candidate_plans(make_graph(conv), h200(), limits, 1).size(), 1u) << conv.text();
      }
    }
  }
}

std::vector<cudnnBackendNumericalNote_t> notes_of(const Plan& plan) {
  const auto part = [](const Descriptor& whole, cudnnBackendAttributeName_t name,
                       cudnnBackendDescriptorType_t type) {
    Descriptor descriptor(type);
    cudnnBackendDescriptor_t pointer = descriptor.get();
    int64_t count = 0;
    check(cudnnBackendGetAttribute(whole.get(), name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count,
                                   &pointer),
          "reading a plan");
    return descriptor;
  };
  const Descriptor config =
      part(plan.get(), CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  const Descriptor engine =
      part(config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  std::vector<cudnnBackendNumericalNote_t> notes(CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
  int64_t count = 0;
  check(cudnnBackendGetAttribute(engine.get(), CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                 CUDNN_TYPE_NUMERICAL_NOTE, static_cast<int64_t>(notes.size()),
                                 &count, notes.data()),
        "reading an engine's notes");
  notes.resize(static_cast<size_t>(count));
  return notes;
}

// The first layer of vgg16, for which cuDNN also offers sums of partial sums in float16.
TEST(DnnPlans, WeightGradientsOf16Bits_AreSummedInFloat32) {
  const Convolution conv{.direction = Convolution::kWeight,
                         .window = {{3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
                         .x = {64, 8, 224, 224},
                         .weight = {64, 8, 3, 3},
                         .y = {64, 64, 224, 224},
                         .dtype = DType::kFloat16};
  const auto plans = candidate_plans(make_graph(conv), h200(), {}, 16);
  ASSERT_EQ(plans.size(), 16u);
  for (const auto& plan : plans) {
    EXPECT_THAT(notes_of(*plan), Not(Contains(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION)))
        << plan->choice().text();
  }
}

TEST(DnnPlans, Choice_MakesTheSamePlanAgain) {
  const Convolution conv{.direction = Convolution::kWeight,
                         .window = {{3, 3}, {1, 1}, {1, 1}, {1, 1}},
                         .x = {32, 64, 56, 56},
                         .weight = {64, 64, 3, 3},
                         .y = {32, 64, 56, 56},
                         .dtype = DType::kFloat16};
  const Graph graph = make_graph(conv);
  const auto plans = candidate_plans(graph, h200(), {}, 8);
  ASSERT_EQ(plans.size(), 8u);
  for (const auto& plan : plans) {
    const auto again = plan_for_choice(graph, h200(), plan->choice());
    ASSERT_TRUE(again) << plan->choice().text();
    EXPECT_EQ(again->workspace(), plan->workspace());
  }
  EXPECT_FALSE(plan_for_choice(graph, h200(), {.engine = 100000}));
}

TEST(DnnPlans, Bias_IsAddedInTheSamePass) {
  for (DType dtype : {DType::kFloat16, DType::kBFloat16}) {
    const Convolution conv{.window = {{3, 3}, {1, 1}, {1, 1}, {1, 1}},
                           .x = {32, 64, 28, 28},
                           .weight = {128, 64, 3, 3},
                           .y = {32, 128, 28, 28},
                           .dtype = dtype,
                           .bias = true};
    EXPECT_EQ(candidate_plans(make_graph(conv), h200(), {}, 1).size(), 1u) << conv.text();
  }
}

TEST(DnnGraph, ShapesThatDoNotFit_AreAnError) {
  Convolution conv{.window = {{3, 3}, {1, 1}, {1, 1}, {1, 1}},
                   .x = {1, 8, 5, 5},
                   .weight = {8, 8, 3, 3},
                   .y = {1, 8, 4, 4}};  // 5 x 5 it should be
  EXPECT_THROW(make_graph(conv), Error);
}

}  // namespace
}  // namespace fleet::cuda::dnn
