#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <random>

#include "backend/cpu/convolution.h"
#include "backend/cpu/device.h"
#include "base/cpu.h"
#include "exec/executor.h"
#include "passes/backward.h"
#include "tests/engine/ops/naive_convolution.h"

namespace fleet {
namespace {

struct Shapes {
  Shape x, weight;
  int64_t padding = 1;
};

std::vector<float> normal_values(int64_t count, double deviation, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, static_cast<float>(deviation));
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

using Results = std::vector<std::vector<float>>;
constexpr const char* kResults[] = {"y", "weight's gradient", "x's gradient"};

struct Inputs {
  explicit Inputs(const Shapes& shapes)
      : naive{shapes.x, shapes.weight, {1, 1}, {shapes.padding, shapes.padding}, {1, 1}, 1},
        x(normal_values(shapes.x.elements(), 1, 1)),
        weight(normal_values(shapes.weight.elements(), 0.1, 2)),
        dy(normal_values(naive.y().elements(), 1, 3)) {}
  NaiveConvolution naive;
  std::vector<float> x, weight, dy;
};

Results compute(const Inputs& in, bool winograd, int64_t workspace_limit = 512) {
  Program program;
  const SectionId forward = program.add_section("forward", {});
  const VarId x = program.parameter("x", in.naive.x, {});
  const VarId w = program.parameter("w", in.naive.weight, {});
  const VarId y = program.emit(forward, "conv2d", {x, w},
                               {{"paddings", in.naive.paddings}, {"winograd", winograd}})[0];
  const VarId dy = program.feed("dy", DType::kFloat32, program.var(y).shape);
  append_backward_from(program, forward, {{y, dy}}, {});
  cpu::CpuDevice device({.conv_workspace_size_limit = workspace_limit});
  const std::vector<VarId> fetched = {y, program.gradient(w), program.gradient(x)};
  PlanOptions options;
  options.device = &device;
  Executor executor(plan_program(program, fetched, options), device, nullptr);
  executor.initialize(1);
  executor.write(x, in.x);
  executor.write(w, in.weight);
  executor.feed(dy, in.dy);
  executor.run({});
  executor.synchronize();
  Results results;
  for (const VarId id : fetched) results.push_back(executor.values<float>(id));
  return results;
}

std::vector<std::vector<double>> reference(const Inputs& in) {
  std::vector<std::vector<double>> results = {std::vector<double>(in.dy.size()),
                                              std::vector<double>(in.weight.size()),
                                              std::vector<double>(in.x.size())};
  in.naive.each_product([&](int64_t x, int64_t w, int64_t y) {
    results[0][y] += static_cast<double>(in.x[x]) * in.weight[w];
    results[1][w] += static_cast<double>(in.x[x]) * in.dy[y];
    results[2][x] += static_cast<double>(in.weight[w]) * in.dy[y];
  });
  return results;
}

// The root mean square of the errors by that of the values.
double relative_error(const std::vector<float>& values, const std::vector<double>& wanted) {
  double errors = 0, squares = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    errors += (values[i] - wanted[i]) * (values[i] - wanted[i]);
    squares += wanted[i] * wanted[i];
  }
  return std::sqrt(errors / squares);
}

bool has_winograd() { return FLEET_X86_HAS("avx512f"); }

TEST(Winograd, MatchesTheDefinition) {
  if (!has_winograd()) GTEST_SKIP() << "oneDNN has it for AVX-512";
  for (const Shapes& shapes :
       {Shapes{{4, 32, 16, 16}, {32, 32, 3, 3}}, Shapes{{8, 64, 8, 8}, {64, 64, 3, 3}},
        Shapes{{8, 48, 7, 7}, {80, 48, 3, 3}}, Shapes{{3, 40, 13, 18}, {36, 40, 3, 3}, 0}}) {
    SCOPED_TRACE(shapes.x.text() + " " + shapes.weight.text());
    const Inputs in(shapes);
    const std::vector<std::vector<double>> wanted = reference(in);
    const Results direct = compute(in, false), winograd = compute(in, true);
    for (size_t i = 0; i < wanted.size(); ++i) {
      const double error = relative_error(winograd[i], wanted[i]);
      const double error_of_direct = relative_error(direct[i], wanted[i]);
      std::printf("%s, %s: error %.1e, direct %.1e\n", shapes.weight.text().c_str(), kResults[i],
                  error, error_of_direct);
      EXPECT_LT(error_of_direct, 1e-6) << i;
      EXPECT_LT(error, 2e-6) << i;
      EXPECT_NE(winograd[i], direct[i]) << i;  // it was not just called so
    }
  }
}

TEST(Winograd, WithoutTheMemory_IsTheDirectMethod) {
  if (!has_winograd()) GTEST_SKIP() << "oneDNN has it for AVX-512";
  const Inputs in({{8, 64, 8, 8}, {64, 64, 3, 3}});
  EXPECT_EQ(compute(in, true, 1), compute(in, false));
}

TEST(Winograd, IsNotTakenWhereItDoesNotPay) {
  const auto takes = [](const Shape& x, const Shape& weight, int64_t stride, DType type) {
    const auto of_shape = [&](const Shape& shape) {
      Argument argument;
      argument.dtype = type;
      argument.shape = shape;
      return argument;
    };
    const Attributes attributes = {{"strides", std::vector<int64_t>{stride, stride}},
                                   {"paddings", std::vector<int64_t>{1, 1}},
                                   {"groups", int64_t{1}}};
    cpu::Convolution conv = cpu::convolution_of(
        cpu::Convolution::kForward, attributes, of_shape(x), of_shape(weight),
        of_shape({x[0], weight[0], (x[2] - 1) / stride + 1, (x[3] - 1) / stride + 1}));
    conv.winograd_memory = size_t{1} << 30;
    return cpu::prefers_winograd(conv);
  };
  const DType f32 = DType::kFloat32;
  EXPECT_TRUE(takes({16, 64, 56, 56}, {64, 64, 3, 3}, 1, f32));
  EXPECT_FALSE(takes({16, 64, 56, 56}, {64, 64, 3, 3}, 2, f32));
  EXPECT_FALSE(takes({16, 64, 56, 56}, {64, 64, 1, 1}, 1, f32));
  EXPECT_FALSE(takes({16, 64, 56, 56}, {64, 64, 3, 3}, 1, DType::kBFloat16));
  EXPECT_FALSE(takes({16, 3, 56, 56}, {64, 3, 3, 3}, 1, f32));     // few channels
  EXPECT_FALSE(takes({1, 512, 7, 7}, {512, 512, 3, 3}, 1, f32));   // four tiles
  EXPECT_FALSE(takes({64, 512, 2, 2}, {512, 512, 3, 3}, 1, f32));  // a quarter of each is used
}

}  // namespace
}  // namespace fleet
