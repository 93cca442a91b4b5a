#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "passes/backward.h"
#include "passes/pass.h"
#include "tensor/host.h"
#include "tests/engine/ops/op_check.h"

namespace fleet {
namespace {

struct FusedBnAddActivationCase {
  Shape x;
  bool is_test = false;
  std::optional<Layout> layout = {};
  double low = -2, high = 3;
};
constexpr double kEpsilon = 1e-3, kMomentum = 0.25;

// x, scale, bias, running mean and variance, z -> y, the running ones after it, the batch's.
std::vector<Values> naive_fused_bn_add_activation(const FusedBnAddActivationCase& c,
                                                  const std::vector<Values>& in) {
  const int64_t channels = c.x[1], inner = c.x.elements() / c.x[0] / channels;
  const double count = static_cast<double>(c.x[0] * inner);
  Values y(in[0].size()), mean(in[3]), variance(in[4]), batch_mean(in[3]), batch_variance(in[4]);
  for (int64_t ch = 0; ch < channels; ++ch) {
    std::vector<int64_t> places;
    for (int64_t n = 0; n < c.x[0]; ++n) {
      for (int64_t s = 0; s < inner; ++s) places.push_back((n * channels + ch) * inner + s);
    }
    double m = 0, v = 0;
    for (int64_t k : places) m += in[0][k] / count;
    for (int64_t k : places) v += (in[0][k] - m) * (in[0][k] - m) / count;
    if (c.is_test) {
      m = in[3][ch];
      v = in[4][ch];
    } else {
      mean[ch] = (1 - kMomentum) * mean[ch] + kMomentum * m;
      variance[ch] = (1 - kMomentum) * variance[ch] + kMomentum * v * count / (count - 1);
    }
    batch_mean[ch] = m;
    batch_variance[ch] = v;
    for (int64_t k : places) {
      y[k] = in[1][ch] * (in[0][k] - m) / std::sqrt(v + kEpsilon) + in[2][ch] + in[5][k];
      y[k] = std::max(y[k], 0.0);
    }
  }
  return {y, mean, variance, batch_mean, batch_variance};
}

OpCheck check_of_fused_bn_add_activation(const FusedBnAddActivationCase& c) {
  const Shape channels{c.x[1]};
  const VarKind kind = c.layout ? VarKind::kState : VarKind::kFeed;
  return {.type = "fused_bn_add_activation",
          .attributes = {{"epsilon", kEpsilon}, {"momentum", kMomentum}, {"is_test", c.is_test}},
          .inputs = {{.shape = c.x, .kind = kind, .layout = c.layout, .low = c.low, .high = c.high},
                     {.shape = channels,
                      .dtype = DType::kFloat32,
                      .kind = VarKind::kParameter,
                      .low = 0.5,
                      .high = 2},
                     {.shape = channels, .dtype = DType::kFloat32, .kind = VarKind::kParameter},
                     {.shape = channels,
                      .dtype = DType::kFloat32,
                      .kind = VarKind::kState,
                      .differentiate = false},
                     {.shape = channels,
                      .dtype = DType::kFloat32,
                      .kind = VarKind::kState,
                      .differentiate = false,
                      .low = 0.5,
                      .high = 2},
                     {.shape = c.x, .kind = kind, .layout = c.layout}},
          .reference =
              [c](const std::vector<Values>& in) {
                return std::vector<Values>{naive_fused_bn_add_activation(c, in)[0]};
              },
          .step = 1e-5};
}

Layout blocked(const Shape& x, int64_t block) {
  const int64_t groups = (x[1] + block - 1) / block, pixels = x[2] * x[3];
  return Layout::blocked({x[0], groups * block, x[2], x[3]},
                         {groups * pixels * block, pixels * block, x[3] * block, block},
                         {{1, block}});
}

TEST(FusedBnAddActivation, Training_MatchesReference) {
  check_op(check_of_fused_bn_add_activation({.x = {3, 5, 4, 3}}));
  check_op(check_of_fused_bn_add_activation({.x = {9, 3}}));
  check_op(check_of_fused_bn_add_activation({.x = {3, 4, 7}}));
  check_op(check_of_fused_bn_add_activation({.x = {1, 2, 5, 9}}));
}

TEST(FusedBnAddActivation, BlockedLayouts_MatchReference) {
  for (const int64_t channels : {3, 16, 17, 40, 96}) {
    const Shape x{2, channels, 3, 5};
    check_op(check_of_fused_bn_add_activation({.x = x, .layout = blocked(x, 16)}));
    check_op(check_of_fused_bn_add_activation({.x = x, .layout = blocked(x, 8)}));
    check_op(check_of_fused_bn_add_activation({.x = x, .layout = Layout::channels_last(x)}));
  }
}

TEST(FusedBnAddActivation, IsTest_UsesTheRunningStatistics) {
  const Shape x{2, 20, 3, 3};
  check_op(check_of_fused_bn_add_activation({.x = x, .is_test = true}));
  check_op(check_of_fused_bn_add_activation({.x = x, .is_test = true, .layout = blocked(x, 16)}));
  OpCheck without =
      check_of_fused_bn_add_activation({.x = x, .is_test = true, .layout = blocked(x, 16)});
  without.optional_outputs = false;
  without.check_gradient = false;
  check_op(without);
}

// More elements than are added up in float at once, and a mean far from zero.
TEST(FusedBnAddActivation, LargeImagesFarFromZero_KeepTheirDigits) {
  for (const std::optional<Layout>& layout :
       {std::optional<Layout>(), std::optional<Layout>(blocked({2, 16, 40, 50}, 16)),
        std::optional<Layout>(Layout::channels_last({2, 16, 40, 50}))}) {
    OpCheck large = check_of_fused_bn_add_activation(
        {.x = {2, 16, 40, 50}, .layout = layout, .low = 99, .high = 101});
    large.check_gradient = false;
    large.tolerance = 1e-4;  // the inputs themselves have 7 digits of 100, and are spread by 2
    check_op(large);
  }
}

TEST(FusedBnAddActivation, Training_MovesTheRunningStatisticsInPlace) {
  const FusedBnAddActivationCase c{.x = {4, 20, 3, 3}, .layout = blocked({4, 20, 3, 3}, 16)};
  OpCheck in_place = check_of_fused_bn_add_activation(c);
  in_place.check_gradient = false;
  in_place.updates = {{1, 3}, {2, 4}};
  in_place.reference = [c](const std::vector<Values>& in) {
    return naive_fused_bn_add_activation(c, in);
  };
  check_op(in_place);
}

// y is read `readers` times: its gradient comes in so many parts. All gradients, with the sum
// outside and inside.
std::vector<Values> gradients_of_join(int readers, bool fuse) {
  const Shape shape{2, 20, 3, 3}, channels{20};
  Program program;
  const SectionId forward = program.add_section("forward", {});
  const VarId x = program.parameter("x", shape, {.kind = Init::kUniform, .a = -2, .b = 3});
  const VarId z = program.parameter("z", shape, {.kind = Init::kUniform, .a = -1, .b = 1});
  const VarId scale =
      program.parameter("scale", channels, {.kind = Init::kUniform, .a = 1, .b = 2});
  const VarId bias = program.parameter("bias", channels, {.kind = Init::kUniform, .a = -1, .b = 1});
  const VarId mean = program.state("mean", channels, {});
  const VarId variance = program.state("variance", channels, {.a = 1});
  const VarId y =
      program.emit(forward, "fused_bn_add_activation", {x, scale, bias, mean, variance, z})[0];
  VarId sum = kNoVar;
  for (int i = 0; i < readers; ++i) {
    const VarId part = program.emit(forward, "tanh", {y})[0];
    const VarId scaled = program.emit(forward, "scale", {part}, {{"scale", i + 0.5}})[0];
    sum = i == 0 ? scaled : program.emit(forward, "elementwise_mul", {sum, scaled})[0];
  }
  append_backward(program, forward, program.emit(forward, "mean", {sum})[0], 1);
  EXPECT_EQ(fuse && run_pass("fuse_gradient_sums", program, {}), fuse && readers > 1);
  std::vector<VarId> keep;
  for (VarId id : {x, z, scale, bias}) keep.push_back(program.gradient(id));
  HostDevice device;
  Executor executor(plan_program(program, keep), device, nullptr);
  executor.initialize(7);
  executor.run({});
  std::vector<Values> gradients;
  for (VarId id : keep) {
    const std::vector<float> raw = executor.values<float>(id);
    gradients.emplace_back(raw.begin(), raw.end());
  }
  return gradients;
}

TEST(FusedBnAddActivation, GradientInParts_IsThatOfTheirSum) {
  for (int readers : {1, 2, 3, 4}) {
    const auto apart = gradients_of_join(readers, false), fused = gradients_of_join(readers, true);
    for (size_t i = 0; i < apart.size(); ++i) {
      double largest = 0;
      for (double value : apart[i]) largest = std::max(largest, std::abs(value));
      ASSERT_GT(largest, 0);
      for (size_t k = 0; k < apart[i].size(); ++k) {
        ASSERT_NEAR(fused[i][k], apart[i][k], 1e-5 * largest) << readers << " readers, " << i;
      }
    }
  }
}

// A residual join and all its gradients, from parts or as one operation.
std::vector<Values> join_and_gradients(const Shape& shape, bool fuse) {
  const Shape channels{shape[1]};
  Program program;
  const SectionId forward = program.add_section("forward", {});
  const VarId x = program.parameter("x", shape, {.kind = Init::kUniform, .a = -2, .b = 3});
  const VarId z = program.parameter("z", shape, {.kind = Init::kUniform, .a = -1, .b = 1});
  const VarId scale = program.parameter("s", channels, {.kind = Init::kUniform, .a = 1, .b = 2});
  const VarId bias = program.parameter("b", channels, {.kind = Init::kUniform, .a = -1, .b = 1});
  const VarId mean = program.state("mean", channels, {});
  const VarId variance = program.state("variance", channels, {.a = 1});
  const VarId saved_mean = program.temporary("saved_mean");
  const VarId saved_variance = program.temporary("saved_variance"),
              norm = program.temporary("norm");
  program.append(forward, "batch_norm", {x, scale, bias, mean, variance},
                 {norm, mean, variance, saved_mean, saved_variance});
  const VarId sum = program.emit(forward, "elementwise_add", {norm, z})[0];
  const VarId y = program.emit(forward, "relu", {sum})[0];
  const VarId tanh = program.emit(forward, "tanh", {y})[0];
  const VarId loss = program.emit(forward, "mean", {tanh})[0];
  if (fuse) {
    run_pass("fuse_elewise_add_act", program, {});
    EXPECT_TRUE(run_pass("fuse_bn_add_act", program, {}));
  }
  append_backward(program, forward, loss, 1000);
  std::vector<VarId> keep = {y, mean, variance};
  for (VarId id : {x, z, scale, bias}) keep.push_back(program.gradient(id));
  HostDevice device;
  Executor executor(plan_program(program, keep), device, nullptr);
  executor.initialize(3);
  executor.run({});
  std::vector<Values> results;
  for (VarId id : keep) {
    const std::vector<float> raw = executor.values<float>(id);
    results.emplace_back(raw.begin(), raw.end());
  }
  return results;
}

// The second is large enough to be done a group of channels after the other.
TEST(FusedBnAddActivation, Join_IsWhatItsPartsAre) {
  for (const Shape& shape : {Shape{3, 20, 5, 3}, Shape{1, 130, 182, 182}}) {
    const auto parts = join_and_gradients(shape, false), fused = join_and_gradients(shape, true);
    for (size_t i = 0; i < parts.size(); ++i) {
      double largest = 0;
      for (double value : parts[i]) largest = std::max(largest, std::abs(value));
      ASSERT_GT(largest, 0);
      int64_t wrong = 0;
      for (size_t k = 0; k < parts[i].size(); ++k) {
        wrong += std::abs(fused[i][k] - parts[i][k]) > 3e-4 * largest;
      }
      // oneDNN adds up a channel's 33124 values in float32, this kernel in parts and double. And an
      // element whose sum is all but zero may fall on the other side of the relu.
      EXPECT_LE(wrong, static_cast<int64_t>(parts[i].size() / 100000)) << shape.text() << " " << i;
    }
  }
}

}  // namespace
}  // namespace fleet
