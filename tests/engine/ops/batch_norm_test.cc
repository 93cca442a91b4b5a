#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/engine/ops/op_check.h"
#include "tests/engine/ops/op_device.h"

namespace fleet {
namespace {

struct BatchNormCase {
  Shape x;
  bool relu = false, is_test = false;
  std::optional<Layout> layout = {};
  double epsilon = 1e-3, momentum = 0.25;
};

struct Moments {
  double mean = 0, variance = 0;
};

// Over all axes but the second.
template <typename F>
void each_of_channel(const Shape& shape, int64_t c, F body) {
  const int64_t inner = shape.elements() / shape[0] / shape[1];
  for (int64_t n = 0; n < shape[0]; ++n) {
    for (int64_t s = 0; s < inner; ++s) body((n * shape[1] + c) * inner + s);
  }
}

Moments moments(const Shape& shape, const Values& x, int64_t c) {
  const double count = static_cast<double>(shape.elements() / shape[1]);
  Moments m;
  each_of_channel(shape, c, [&](int64_t k) { m.mean += x[k] / count; });
  each_of_channel(shape, c,
                  [&](int64_t k) { m.variance += (x[k] - m.mean) * (x[k] - m.mean) / count; });
  return m;
}

// x, scale, bias, running mean and variance -> y, the running ones after it, the batch's.
std::vector<Values> naive_batch_norm(const BatchNormCase& c, const std::vector<Values>& in) {
  const double count = static_cast<double>(c.x.elements() / c.x[1]);
  Values y(in[0].size()), mean(in[3]), variance(in[4]), batch_mean, batch_variance;
  for (int64_t ch = 0; ch < c.x[1]; ++ch) {
    Moments m = moments(c.x, in[0], ch);
    if (c.is_test) m = {in[3][ch], in[4][ch]};
    each_of_channel(c.x, ch, [&](int64_t k) {
      y[k] = in[1][ch] * (in[0][k] - m.mean) / std::sqrt(m.variance + c.epsilon) + in[2][ch];
      if (c.relu) y[k] = std::max(y[k], 0.0);
    });
    batch_mean.push_back(m.mean);
    batch_variance.push_back(m.variance);
    if (c.is_test) continue;
    mean[ch] = (1 - c.momentum) * mean[ch] + c.momentum * m.mean;
    variance[ch] = (1 - c.momentum) * variance[ch] + c.momentum * m.variance * count / (count - 1);
  }
  return {y, mean, variance, batch_mean, batch_variance};
}

OpCheck check_of_batch_norm(const BatchNormCase& c) {
  const Shape channels{c.x[1]};
  const VarKind kind = c.layout ? VarKind::kState : VarKind::kFeed;
  return {.type = "batch_norm",
          .attributes = {{"epsilon", c.epsilon},
                         {"momentum", c.momentum},
                         {"is_test", c.is_test},
                         {"activation", std::string(c.relu ? "relu" : "")}},
          .inputs = {{.shape = c.x, .kind = kind, .layout = c.layout, .low = -2, .high = 3},
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
                      .high = 2}},
          // The gradient is that of y; the statistics are checked by themselves.
          .reference = [c](const std::vector<Values>& in) {
            return std::vector<Values>{naive_batch_norm(c, in)[0]};
          }};
}

void check_batch_norm(const BatchNormCase& c) {
  SCOPED_TRACE("x " + c.x.text() + (c.relu ? " relu" : "") + (c.is_test ? " is_test" : ""));
  check_op(check_of_batch_norm(c));
}

Layout blocked(const Shape& x, int64_t block) {
  const int64_t groups = (x[1] + block - 1) / block, pixels = x[2] * x[3];
  return Layout::blocked({x[0], groups * block, x[2], x[3]},
                         {groups * pixels * block, pixels * block, x[3] * block, block},
                         {{1, block}});
}

TEST(BatchNorm, Training_MatchesReference) {
  check_batch_norm({.x = {3, 5, 4, 3}});
  check_batch_norm({.x = {16, 7}});
  check_batch_norm({.x = {3, 4, 6}});
}

TEST(BatchNorm, TrainingWithRelu_MatchesReference) {
  check_batch_norm({.x = {3, 5, 4, 3}, .relu = true});
  check_batch_norm({.x = {16, 7}, .relu = true});
}

TEST(BatchNorm, BlockedLayouts_MatchReference) {
  for (const int64_t channels : {3, 16, 17, 20}) {
    const Shape x{2, channels, 3, 5};
    for (const bool relu : {false, true}) {
      check_batch_norm({.x = x, .relu = relu, .layout = blocked(x, 16)});
      check_batch_norm({.x = x, .relu = relu, .layout = blocked(x, 8)});
      check_batch_norm({.x = x, .relu = relu, .layout = Layout::channels_last(x)});
    }
  }
}

// Large enough for the CPU's own loops.
TEST(BatchNorm, LargerImages_MatchReference) {
  for (const int64_t channels : {3, 20}) {
    const Shape x{2, channels, 9, 9};
    for (const bool relu : {false, true}) {
      for (const bool is_test : {false, true}) {
        check_batch_norm({.x = x, .relu = relu, .is_test = is_test});
        check_batch_norm({.x = x, .relu = relu, .is_test = is_test, .layout = blocked(x, 16)});
        check_batch_norm({.x = x, .relu = relu, .is_test = is_test, .layout = blocked(x, 8)});
        check_batch_norm(
            {.x = x, .relu = relu, .is_test = is_test, .layout = Layout::channels_last(x)});
      }
    }
  }
  check_batch_norm({.x = {3, 5, 40}, .relu = true});
}

// Rows of a pixel or several, and a last row that is not whole.
TEST(BatchNorm, ChannelsLast_MatchesReference) {
  for (const int64_t channels : {8, 24, 32, 40, 48, 64, 80, 96, 144}) {
    const Shape x{3, channels, 3, 3};
    check_batch_norm({.x = x, .relu = channels < 100, .layout = Layout::channels_last(x)});
  }
  if (op_device().backend() == "cuda") return;
  const Shape rank3{3, 20, 7};
  check_batch_norm({.x = rank3, .relu = true, .layout = Layout::channels_last(rank3)});
}

// More pixels than are summed at once. Differences would take minutes, so gradients are left to
// the smaller images.
TEST(BatchNorm, ChannelsLastInPieces_MatchesReference) {
  if (op_device().backend() == "cuda") GTEST_SKIP() << "the CPU's loops";
  // More than 2,048 channels are several groups.
  for (const Shape& x : {Shape{2, 5, 41, 43}, Shape{2, 24, 41, 43}, Shape{2, 64, 41, 43},
                         Shape{2, 320, 41, 43}, Shape{2, 2064, 3, 5}, Shape{2, 1001, 3, 5}}) {
    OpCheck check = check_of_batch_norm({.x = x, .layout = Layout::channels_last(x)});
    check.check_gradient = false;
    check_op(check);
  }
}

TEST(BatchNorm, IsTest_UsesTheRunningStatistics) {
  const Shape x{2, 20, 3, 3};
  check_batch_norm({.x = x, .is_test = true});
  check_batch_norm({.x = x, .is_test = true, .layout = blocked(x, 16)});
  check_batch_norm({.x = x, .relu = true, .is_test = true, .layout = blocked(x, 16)});
  check_batch_norm({.x = x, .relu = true, .is_test = true, .layout = Layout::channels_last(x)});
}

TEST(BatchNorm, IsTestWithoutOptionalOutputs_MatchesReference) {
  for (const bool relu : {false, true}) {
    for (const Shape& x : {Shape{2, 20, 3, 3}, Shape{2, 20, 9, 9}}) {
      OpCheck without = check_of_batch_norm({.x = x, .relu = relu, .is_test = true});
      without.optional_outputs = false;
      without.check_gradient = false;
      check_op(without);
    }
  }
}

TEST(BatchNorm, Training_ReturnsTheStatisticsOfTheBatch) {
  for (const Shape& x : {Shape{4, 20, 3, 3}, Shape{4, 20, 7, 7}}) {
    const BatchNormCase c{.x = x, .relu = true};
    OpCheck statistics = check_of_batch_norm(c);
    statistics.check_gradient = false;
    statistics.reference = [c](const std::vector<Values>& in) { return naive_batch_norm(c, in); };
    check_op(statistics);
  }
}

TEST(BatchNorm, Training_MovesTheRunningStatisticsInPlace) {
  // The check runs twice but sets its states before each run, so one step's result is left.
  const BatchNormCase c{.x = {4, 6, 3, 3}, .layout = Layout::channels_last({4, 6, 3, 3})};
  OpCheck in_place = check_of_batch_norm(c);
  in_place.check_gradient = false;
  in_place.updates = {{1, 3}, {2, 4}};
  in_place.reference = [c](const std::vector<Values>& in) { return naive_batch_norm(c, in); };
  check_op(in_place);
}

TEST(BatchNorm, OneValueAChannelInTraining_IsRefused) {
  Program program;
  const SectionId section = program.add_section("forward", {});
  const VarId x = program.feed("x", DType::kFloat32, {1, 3, 1, 1});
  std::vector<VarId> inputs = {x};
  for (const char* name : {"scale", "bias", "mean", "variance"}) {
    inputs.push_back(program.parameter(name, {3}, {}));
  }
  EXPECT_THROW(program.emit(section, "batch_norm", inputs), Error);
  EXPECT_NO_THROW(program.emit(section, "batch_norm", inputs, {{"is_test", true}}));
}

}  // namespace
}  // namespace fleet
