// Batch normalization with an activation whose input the gradient computes again.
#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <cmath>

#include "passes/backward.h"
#include "passes/pass.h"
#include "tensor/host.h"
#include "tests/engine/ops/image_layouts.h"
#include "tests/engine/ops/op_check.h"
#include "tests/engine/ops/op_device.h"

namespace fleet {
namespace {

constexpr double kEpsilon = 1e-3;

struct ActivatedNorm {
  Shape x;
  std::string activation;
  bool is_test = false;
  std::optional<Layout> layout = {};
  bool learns_x = true;
};

double activated(const std::string& activation, double u) {
  if (activation == "relu6") return std::clamp(u, 0.0, 6.0);
  if (activation == "silu") return u / (1 + std::exp(-u));
  return u * std::clamp(u + 3, 0.0, 6.0) / 6;
}

Values naive_activated_norm(const ActivatedNorm& c, const std::vector<Values>& in) {
  const int64_t channels = c.x[1], inner = c.x.elements() / c.x[0] / channels;
  const double count = static_cast<double>(c.x[0] * inner);
  Values y(in[0].size());
  for (int64_t ch = 0; ch < channels; ++ch) {
    std::vector<int64_t> places;
    for (int64_t n = 0; n < c.x[0]; ++n) {
      for (int64_t s = 0; s < inner; ++s) places.push_back((n * channels + ch) * inner + s);
    }
    double mean = 0, variance = 0;
    for (const int64_t k : places) mean += in[0][k] / count;
    for (const int64_t k : places) variance += (in[0][k] - mean) * (in[0][k] - mean) / count;
    if (c.is_test) {
      mean = in[3][ch];
      variance = in[4][ch];
    }
    for (const int64_t k : places) {
      const double normal = (in[0][k] - mean) / std::sqrt(variance + kEpsilon);
      y[k] = activated(c.activation, in[1][ch] * normal + in[2][ch]);
    }
  }
  return y;
}

void check_activated_norm(const ActivatedNorm& c) {
  SCOPED_TRACE(c.activation + " " + c.x.text());
  const auto statistic = [&](double low, double high) {
    return CheckInput{.shape = {c.x[1]},
                      .dtype = DType::kFloat32,
                      .kind = VarKind::kState,
                      .differentiate = false,
                      .low = low,
                      .high = high};
  };
  const auto parameter = [&](double low, double high) {
    return CheckInput{.shape = {c.x[1]},
                      .dtype = DType::kFloat32,
                      .kind = VarKind::kParameter,
                      .low = low,
                      .high = high};
  };
  // Wide enough to reach both bounds of relu6 and hardswish.
  check_op(
      {.type = "batch_norm",
       .attributes = {{"epsilon", kEpsilon}, {"is_test", c.is_test}, {"activation", c.activation}},
       .inputs = {{.shape = c.x,
                   .kind = c.layout ? VarKind::kState : VarKind::kFeed,
                   .differentiate = c.learns_x,
                   .layout = c.layout,
                   .low = -2,
                   .high = 3},
                  parameter(2, 4),
                  parameter(0, 3),
                  statistic(-1, 1),
                  statistic(0.5, 2)},
       .reference =
           [c](const std::vector<Values>& in) {
             return std::vector<Values>{naive_activated_norm(c, in)};
           },
       .step = 1e-5});
}

class BatchNormActivation : public testing::TestWithParam<std::string> {};

TEST_P(BatchNormActivation, Training_MatchesReference) {
  check_activated_norm({.x = {3, 5, 4, 3}, .activation = GetParam()});
  check_activated_norm({.x = {2, 16, 6, 5}, .activation = GetParam()});
  check_activated_norm({.x = {16, 12}, .activation = GetParam()});
}

TEST_P(BatchNormActivation, IsTest_UsesTheRunningStatistics) {
  check_activated_norm({.x = {2, 8, 3, 3}, .activation = GetParam(), .is_test = true});
}

TEST_P(BatchNormActivation, LayoutsOfConvolutions_MatchReference) {
  if (op_device().backend() == "cuda") GTEST_SKIP() << "the CPU's layouts";
  for (const int64_t channels : {3, 16, 20, 72}) {
    const Shape x{2, channels, 3, 5};
    check_activated_norm({.x = x, .activation = GetParam(), .layout = blocked16(x)});
    check_activated_norm({.x = x, .activation = GetParam(), .layout = blocked8(x)});
    check_activated_norm({.x = x, .activation = GetParam(), .layout = Layout::channels_last(x)});
  }
}

// Only the parameters learn: the gradient of the activation is stored nowhere.
TEST_P(BatchNormActivation, InputThatDoesNotLearn_MatchesReference) {
  const Shape x{2, 6, 4, 3};
  check_activated_norm({.x = x, .activation = GetParam(), .learns_x = false});
  if (op_device().backend() == "cuda") return;
  check_activated_norm(
      {.x = x, .activation = GetParam(), .layout = Layout::channels_last(x), .learns_x = false});
}

struct NormCase {
  std::string activation;
  int readers;
  bool learns_x;
};

// y is read by several. The gradients of scale, bias and x, by the operation alone or apart.
std::vector<Values> gradients_of_norm(const NormCase& c, bool fuse, int threads) {
  const Shape shape{2, 8, 128, 130}, channels{8};  // enough to be done group by group
  Program program;
  const SectionId forward = program.add_section("forward", {});
  const Init values{.kind = Init::kUniform, .a = -2, .b = 3};
  const VarId x =
      c.learns_x ? program.parameter("x", shape, values) : program.state("x", shape, values);
  const VarId scale = program.parameter("s", channels, {.kind = Init::kUniform, .a = 1, .b = 3});
  const VarId bias = program.parameter("b", channels, {.kind = Init::kUniform, .a = 0, .b = 3});
  const VarId mean = program.state("mean", channels, {});
  const VarId variance = program.state("variance", channels, {.a = 1});
  const VarId norm = program.emit(forward, "batch_norm", {x, scale, bias, mean, variance})[0];
  const VarId y = program.emit(forward, c.activation, {norm})[0];
  VarId sum = kNoVar;
  for (int i = 0; i < c.readers; ++i) {
    const VarId part = program.emit(forward, i % 2 ? "tanh" : "sigmoid", {y})[0];
    sum = i == 0 ? part : program.emit(forward, "elementwise_mul", {sum, part})[0];
  }
  EXPECT_EQ(fuse && run_pass("fuse_bn_recomputed_act", program, {}), fuse);
  append_backward(program, forward, program.emit(forward, "mean", {sum})[0], 1000);
  if (fuse) run_pass("fuse_gradient_sums", program, {});
  std::vector<VarId> keep = {program.gradient(scale), program.gradient(bias)};
  if (c.learns_x) keep.push_back(program.gradient(x));
  const int before = omp_get_max_threads();
  omp_set_num_threads(threads);
  HostDevice device;
  Executor executor(plan_program(program, keep), device, nullptr);
  executor.initialize(7);
  executor.run({});
  std::vector<Values> gradients;
  for (const VarId id : keep) {
    const std::vector<float> raw = executor.values<float>(id);
    gradients.emplace_back(raw.begin(), raw.end());
  }
  omp_set_num_threads(before);
  return gradients;
}

TEST_P(BatchNormActivation, GradientInParts_IsThatOfTheOperationsApart) {
  if (op_device().backend() == "cuda") GTEST_SKIP() << "it runs on the host";
  for (const NormCase& c : {NormCase{GetParam(), 1, true}, NormCase{GetParam(), 2, true},
                            NormCase{GetParam(), 3, true}, NormCase{GetParam(), 2, false}}) {
    SCOPED_TRACE(std::to_string(c.readers) + (c.learns_x ? " readers" : " readers, x is fixed"));
    const auto apart = gradients_of_norm(c, false, 1), fused = gradients_of_norm(c, true, 1);
    EXPECT_EQ(gradients_of_norm(c, true, 3), fused) << "bits of three threads";
    for (size_t i = 0; i < apart.size(); ++i) {
      double largest = 0;
      for (const double value : apart[i]) largest = std::max(largest, std::abs(value));
      ASSERT_GT(largest, 0);
      // Of values beside a bend of relu6 or hardswish, rounding chooses the side.
      int64_t others = 0;
      for (size_t k = 0; k < apart[i].size(); ++k) {
        others += !(std::abs(fused[i][k] - apart[i][k]) <= 1e-4 * largest);
      }
      EXPECT_LE(others, 4) << "gradient " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Activations, BatchNormActivation,
                         testing::Values("relu6", "silu", "hardswish"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace fleet
