#include "backend/cpu/winograd.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>
#include <cstdio>
#include <random>

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
constexpr const char* kResults[] = {"y", "weight's gradient", "x's gradient", "bias's gradient"};
constexpr size_t kOfProducts = 3;  // those that depend on the method

struct Inputs {
  explicit Inputs(const Shapes& shapes)
      : naive{shapes.x, shapes.weight, {1, 1}, {shapes.padding, shapes.padding}, {1, 1}, 1},
        x(normal_values(shapes.x.elements(), 1, 1)),
        weight(normal_values(shapes.weight.elements(), 0.1, 2)),
        dy(normal_values(naive.y().elements(), 1, 3)),
        bias(normal_values(shapes.weight[0], 1, 4)) {}
  NaiveConvolution naive;
  std::vector<float> x, weight, dy, bias;
};

Results compute(const Inputs& in, bool winograd, int64_t workspace_limit = 512) {
  Program program;
  const SectionId forward = program.add_section("forward", {});
  const VarId x = program.parameter("x", in.naive.x, {});
  const VarId w = program.parameter("w", in.naive.weight, {});
  const VarId bias = program.parameter("bias", Shape{in.naive.weight[0]}, {});
  const VarId y = program.emit(forward, "conv2d", {x, w, bias},
                               {{"paddings", in.naive.paddings}, {"winograd", winograd}})[0];
  const VarId dy = program.feed("dy", DType::kFloat32, program.var(y).shape);
  append_backward_from(program, forward, {{y, dy}}, {});
  cpu::CpuDevice device({.conv_workspace_size_limit = workspace_limit});
  const std::vector<VarId> fetched = {y, program.gradient(w), program.gradient(x),
                                      program.gradient(bias)};
  PlanOptions options;
  options.device = &device;
  Executor executor(plan_program(program, fetched, options), device, nullptr);
  executor.initialize(1);
  executor.write(x, in.x);
  executor.write(w, in.weight);
  executor.write(bias, in.bias);
  executor.feed(dy, in.dy);
  executor.run({});
  executor.synchronize();
  Results results;
  for (const VarId id : fetched) results.push_back(executor.values<float>(id));
  return results;
}

std::vector<std::vector<double>> reference(const Inputs& in) {
  std::vector<std::vector<double>> results = {
      std::vector<double>(in.dy.size()), std::vector<double>(in.weight.size()),
      std::vector<double>(in.x.size()), std::vector<double>(in.bias.size())};
  in.naive.each_product([&](int64_t x, int64_t w, int64_t y) {
    results[0][y] += static_cast<double>(in.x[x]) * in.weight[w];
    results[1][w] += static_cast<double>(in.x[x]) * in.dy[y];
    results[2][x] += static_cast<double>(in.weight[w]) * in.dy[y];
  });
  const Shape y = in.naive.y();
  for (size_t i = 0; i < in.dy.size(); ++i) {
    const size_t filter = i / static_cast<size_t>(y[2] * y[3]) % in.bias.size();
    results[0][i] += in.bias[filter];
    results[3][filter] += in.dy[i];
  }
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

bool has_winograd() { return FLEET_X86_HAS("avx2") && FLEET_X86_HAS("fma"); }
// ONEDNN_MAX_CPU_ISA=AVX2 selects our own loops on every processor.
bool has_own_loops() {
  return has_winograd() && dnnl::get_effective_cpu_isa() < dnnl::cpu_isa::avx512_core;
}

TEST(Winograd, MatchesTheDefinition) {
  if (!has_winograd()) GTEST_SKIP() << "there is none without AVX2";
  for (const Shapes& shapes :
       {Shapes{{4, 32, 16, 16}, {32, 32, 3, 3}}, Shapes{{12, 64, 8, 8}, {64, 64, 3, 3}},
        Shapes{{12, 48, 7, 7}, {80, 48, 3, 3}}, Shapes{{5, 40, 13, 18}, {36, 40, 3, 3}, 0},
        Shapes{{6, 32, 11, 11}, {32, 32, 3, 3}, 2}, Shapes{{3, 264, 14, 14}, {32, 264, 3, 3}}}) {
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
      // It was not just called so. oneDNN has none for this padding.
      if (i < kOfProducts && (shapes.padding < 2 || has_own_loops())) {
        EXPECT_NE(winograd[i], direct[i]) << i;
      }
    }
  }
}

TEST(Winograd, AnyNumberOfThreads_GivesTheSameBits) {
  if (!has_own_loops()) GTEST_SKIP() << "oneDNN's sums for AVX-512 depend on the threads";
  const Inputs in({{9, 64, 15, 15}, {72, 64, 3, 3}});  // 144 tiles, more than one sum has
  const int before = omp_get_max_threads();
  Results first;
  for (const int threads : {1, 2, 5}) {
    omp_set_num_threads(threads);
    const Results now = compute(in, true);
    if (first.empty()) first = now;
    EXPECT_EQ(now, first) << threads << " threads";
  }
  omp_set_num_threads(before);
}

// An update needs no reorder.
TEST(Winograd, WeightAndItsGradient_LieAlike) {
  if (!has_own_loops()) GTEST_SKIP() << "oneDNN's gradient has another layout";
  Program program;
  const SectionId forward = program.add_section("forward", {});
  const VarId x = program.feed("x", DType::kFloat32, {12, 64, 8, 8});
  const VarId w = program.parameter("w", {64, 64, 3, 3}, {});
  const VarId y = program.emit(forward, "conv2d", {x, w},
                               {{"paddings", std::vector<int64_t>{1, 1}}, {"winograd", true}})[0];
  const VarId dy = program.feed("dy", DType::kFloat32, program.var(y).shape);
  append_backward_from(program, forward, {{y, dy}}, {});
  const Plan plan = plan_program(program, {program.gradient(w)});
  EXPECT_EQ(plan.vars[w].layout, plan.vars[program.gradient(w)].layout);
}

TEST(Winograd, WithoutTheMemory_IsTheDirectMethod) {
  if (!has_winograd()) GTEST_SKIP() << "there is none without AVX2";
  const Inputs in({{12, 64, 8, 8}, {64, 64, 3, 3}});
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
