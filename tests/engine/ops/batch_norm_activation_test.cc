// Batch normalization with an activation whose input the gradient computes again.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "tests/engine/ops/op_check.h"
#include "tests/engine/ops/op_device.h"

namespace fleet {
namespace {

constexpr double kEpsilon = 1e-3;

struct ActivatedNorm {
  Shape x;
  std::string activation;
  bool is_test = false;
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
       .inputs = {{.shape = c.x, .low = -2, .high = 3},
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

INSTANTIATE_TEST_SUITE_P(Activations, BatchNormActivation,
                         testing::Values("relu6", "silu", "hardswish"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace fleet
