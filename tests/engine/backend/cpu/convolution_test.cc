#include "backend/cpu/convolution.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <numeric>
#include <random>

#include "base/cpu.h"
#include "exec/backend.h"
#include "exec/executor.h"
#include "passes/backward.h"
#include "tensor/host.h"

namespace fleet {
namespace {

Program training_convolution(const Shape& x, const Shape& weight, int64_t padding,
                             int64_t groups = 1) {
  Program program;
  const SectionId forward = program.add_section("forward", {});
  const VarId image = program.feed("x", DType::kFloat32, x);
  const VarId w = program.parameter("w", weight, {.kind = Init::kNormal, .a = 0, .b = 0.1});
  const VarId y =
      program.emit(forward, "conv2d", {image, w},
                   {{"paddings", std::vector<int64_t>{padding, padding}}, {"groups", groups}})[0];
  const VarId dy = program.feed("dy", DType::kFloat32, program.var(y).shape);
  append_backward_from(program, forward, {{y, dy}}, {});
  return program;
}

TEST(Convolution, WeightAndItsGradient_LieAlike) {
  if (!FLEET_X86_HAS("avx2")) GTEST_SKIP() << "oneDNN is quick from AVX2 on";
  for (const int64_t channels : {3, 16, 20, 64}) {
    const Program program = training_convolution({2, channels, 8, 8}, {32, channels, 3, 3}, 1);
    const VarId w = program.find("w");
    const Plan plan = plan_program(program, {program.gradient(w)});
    EXPECT_EQ(plan.vars[w].layout, plan.vars[program.gradient(w)].layout);
    for (const PlannedOp& planned : plan.ops) {
      if (planned.op.type() != "reorder") continue;
      EXPECT_NE(planned.op.outputs[0], program.gradient(w)) << channels << " channels";
    }
  }
}

// The same for x and dy, which have one shape.
void feed_noise(const Program& program, const Shape& x, Executor& executor) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> values(x.elements());
  for (float& value : values) value = normal(random);
  executor.initialize(1);
  executor.feed(program.find("x"), values);
  executor.feed(program.find("dy"), values);
}

TEST(Convolution, WeightGradient_IsTheSameBitsEveryTime) {
  const Shape x{8, 64, 14, 14};
  const Program program = training_convolution(x, {64, 64, 3, 3}, 1);
  const VarId gradient = program.gradient(program.find("w"));
  HostDevice device;
  Executor executor(plan_program(program, {gradient}), device, nullptr);
  feed_noise(program, x, executor);
  std::vector<float> first;
  for (int repeat = 0; repeat < 10; ++repeat) {
    executor.run({});
    executor.synchronize();
    const std::vector<float> now = executor.values<float>(gradient);
    if (first.empty()) first = now;
    ASSERT_EQ(now, first) << "run " << repeat;
  }
}

Argument of_shape(const Shape& shape) {
  Argument argument;
  argument.shape = shape;
  return argument;
}

cpu::Convolution weight_gradient(int64_t channels, int64_t kernel, int64_t groups) {
  const Shape image{2, channels, 14, 14};
  const int64_t padding = kernel / 2;
  const Attributes attributes = {{"strides", std::vector<int64_t>{1, 1}},
                                 {"paddings", std::vector<int64_t>{padding, padding}},
                                 {"groups", groups}};
  return cpu::convolution_of(cpu::Convolution::kWeight, attributes, of_shape(image),
                             of_shape({channels, channels / groups, kernel, kernel}),
                             of_shape(image));
}

TEST(DepthwiseWeight, LargeKernels_AreItsOwn) {
  EXPECT_TRUE(cpu::DepthwiseWeight::is_for(weight_gradient(32, 7, 32)));
  EXPECT_TRUE(cpu::DepthwiseWeight::is_for(weight_gradient(24, 5, 24)));
  EXPECT_FALSE(cpu::DepthwiseWeight::is_for(weight_gradient(32, 7, 1)));
  EXPECT_FALSE(cpu::DepthwiseWeight::is_for(weight_gradient(32, 7, 2)));
  EXPECT_FALSE(cpu::DepthwiseWeight::is_for(weight_gradient(32, 9, 32)));
}

TEST(DepthwiseWeight, ItsGradient_LiesAsTheWeightDoes) {
  if (!FLEET_X86_HAS("avx512f")) GTEST_SKIP() << "oneDNN has blocks of 16 from AVX-512 on";
  const Program program = training_convolution({2, 40, 14, 14}, {40, 1, 7, 7}, 3, 40);
  const VarId w = program.find("w");
  const Plan plan = plan_program(program, {program.gradient(w)});
  EXPECT_EQ(plan.vars[w].layout, plan.vars[program.gradient(w)].layout);
}

TEST(DepthwiseWeight, AnyNumberOfThreads_GivesTheSameBits) {
  const Shape x{3, 48, 14, 14};
  const Program program = training_convolution(x, {48, 1, 7, 7}, 3, 48);
  const VarId gradient = program.gradient(program.find("w"));
  HostDevice device;
  Executor executor(plan_program(program, {gradient}), device, nullptr);
  feed_noise(program, x, executor);
  const int before = omp_get_max_threads();
  std::vector<float> first;
  for (const int threads : {1, 2, 5}) {
    omp_set_num_threads(threads);
    executor.run({});
    executor.synchronize();
    const std::vector<float> now = executor.values<float>(gradient);
    if (first.empty()) first = now;
    EXPECT_EQ(now, first) << threads << " threads";
  }
  omp_set_num_threads(before);
}

// A convolution, its image with channels last, and back to the next convolution: the blocks of
// channels stay, so only x and the result are reordered.
TEST(Convolution, ChannelsLastBetweenTwo_AreTransposedWithoutAReorder) {
  if (!FLEET_X86_HAS("avx2")) GTEST_SKIP() << "blocks of channels from AVX2 on";
  for (const int64_t channels : {16, 40, 44}) {
    Program program;
    const SectionId forward = program.add_section("forward", {});
    const Shape shape{2, channels, 9, 7};
    const VarId x = program.feed("x", DType::kFloat32, shape);
    const auto convolved = [&](VarId image, const std::string& name) {
      const VarId w = program.parameter(name, {channels, 1, 3, 3}, {.kind = Init::kNormal, .b = 1});
      return program.emit(forward, "conv2d", {image, w},
                          {{"paddings", std::vector<int64_t>{1, 1}}, {"groups", channels}})[0];
    };
    const auto turned = [&](VarId image, const std::vector<int64_t>& perm) {
      return program.emit(forward, "transpose", {image}, {{"perm", perm}})[0];
    };
    const VarId first = convolved(x, "v"), last = turned(first, {0, 2, 3, 1});
    const VarId back = turned(last, {0, 3, 1, 2});
    const VarId end = convolved(back, "w");
    HostDevice device;
    Executor executor(plan_program(program, {first, last, back, end}), device, nullptr);
    int reorders = 0;
    for (const PlannedOp& planned : executor.plan().ops) {
      reorders += planned.op.type() == "reorder" && planned.op.inputs[0] == first;
      reorders += planned.op.type() == "reorder" && planned.op.inputs[0] == back;
    }
    EXPECT_EQ(reorders, 0) << channels;
    executor.initialize(1);
    std::vector<float> values(shape.elements());
    std::iota(values.begin(), values.end(), -100.0f);
    executor.feed(x, values);
    executor.run({});
    executor.synchronize();
    const auto image = executor.values<float>(first), turned_image = executor.values<float>(last);
    EXPECT_EQ(image, executor.values<float>(back)) << channels;
    const int64_t pixels = shape[2] * shape[3];
    for (int64_t i = 0; i < shape.elements(); ++i) {
      const int64_t pixel = i % pixels, channel = i / pixels % channels, n = i / pixels / channels;
      ASSERT_EQ(turned_image[(n * pixels + pixel) * channels + channel], image[i]) << channels;
    }
  }
}

// The gradient of a weight whose image is narrower than a stride. Ones everywhere: a tap that reads
// the image gets one for each image, the others get zero, whatever lay in the scratch memory.
TEST(Convolution, ImageNarrowerThanAStride_ReadsNoStaleScratch) {
  std::string why;
  if (low_precision_types("cpu", &why).empty()) GTEST_SKIP() << why;
  for (const auto& [kernel, stride] : std::vector<std::pair<int64_t, int64_t>>{{3, 2}, {5, 3}}) {
    const Attributes attributes = {{"strides", std::vector<int64_t>{stride, stride}},
                                   {"paddings", std::vector<int64_t>{kernel / 2, kernel / 2}},
                                   {"groups", int64_t{1}}};
    const Shape image{8, 32, 1, 1}, weight{64, 32, kernel, kernel}, output{8, 64, 1, 1};
    const auto typed = [](const Shape& shape) {
      Argument argument = of_shape(shape);
      argument.dtype = DType::kBFloat16;
      return argument;
    };
    Argument x = typed(image), dy = typed(output), dweight = typed(weight);
    const cpu::Convolution conv =
        cpu::convolution_of(cpu::Convolution::kWeight, attributes, x, dweight, dy);
    const cpu::ConvolutionChoice choice = cpu::choose(conv, {{}});
    std::vector<BFloat16> ones(8 * 64, BFloat16(1.0f)), gradient(weight.elements());
    x.layout = choice.x, dy.layout = choice.y, dweight.layout = choice.weight;
    x.data = dy.data = ones.data(), dweight.data = gradient.data();
    std::vector<uint64_t> scratch(choice.workspace / 8 + 16, ~uint64_t{0});  // no numbers
    const auto first = (reinterpret_cast<uintptr_t>(scratch.data()) + 63) / 64 * 64;
    const auto made =
        cpu::make_convolution(conv, x, dweight, {}, dy, reinterpret_cast<void*>(first));
    HostDevice device;
    made->run(*device.make_stream(""));
    float sum = 0;
    for (const BFloat16 value : gradient) {
      ASSERT_TRUE(value == 0.0f || value == 8.0f) << static_cast<float>(value);
      sum += value;
    }
    EXPECT_EQ(sum, 8.0f * 64 * 32) << kernel;
  }
}

TEST(Convolution, BlocksAcrossGroups_AreNotTakenFromTheWeight) {
  // As another reader might have laid the weight out: 16 outputs a block, 6 a group.
  const Layout across = Layout::blocked({32, 3, 3, 3}, {27 * 16, 9 * 16, 3 * 16, 16}, {{0, 16}});
  const Attributes attributes = {{"strides", std::vector<int64_t>{1, 1}},
                                 {"paddings", std::vector<int64_t>{0, 0}},
                                 {"groups", int64_t{4}}};
  const cpu::Convolution conv =
      cpu::convolution_of(cpu::Convolution::kForward, attributes, of_shape({2, 12, 8, 8}),
                          of_shape({24, 3, 3, 3}), of_shape({2, 24, 6, 6}));
  EXPECT_NE(cpu::choose(conv, {{std::nullopt, across, std::nullopt}}).weight, across);
}

TEST(Convolution, GroupsOfFewChannels_StillGetAPlan) {
  Program program;
  const SectionId forward = program.add_section("forward", {});
  const VarId x = program.feed("x", DType::kFloat32, {2, 12, 8, 8});
  const VarId w = program.parameter("w", {24, 3, 3, 3}, {});
  const VarId y = program.emit(forward, "conv2d", {x, w}, {{"groups", int64_t{4}}})[0];
  EXPECT_FALSE(plan_program(program, {y}).vars[w].layout.is_opaque());
}

}  // namespace
}  // namespace fleet
