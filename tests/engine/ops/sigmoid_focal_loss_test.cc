#include <gtest/gtest.h>

#include <cmath>

#include "tests/engine/ops/op_check.h"

namespace fleet {
namespace {

struct Focus {
  double alpha = -1, gamma = 0, scale = 1, bias = 0, threshold = -1;
  Attributes attributes() const {
    return {{"alpha", alpha},
            {"gamma", gamma},
            {"target_scale", scale},
            {"target_bias", bias},
            {"target_threshold", threshold}};
  }
};

std::vector<Values> naive_focal_loss(const std::vector<Values>& in, const Focus& focus,
                                     size_t classes) {
  Values loss;
  for (size_t n = 0; n < in[0].size() / classes; ++n) {
    double sum = 0;
    for (size_t c = 0; c < classes; ++c) {
      const double p = 1 / (1 + std::exp(-in[0][n * classes + c]));
      double t = in[1][n * classes + c] * focus.scale + focus.bias;
      if (focus.threshold >= 0) t = t > focus.threshold ? 1 : 0;
      const double weight = in.size() < 3 || in[2].empty() ? 1
                            : in[2].size() == 1            ? in[2][0]
                                                           : in[2][c];
      const double entropy = -weight * t * std::log(p) - (1 - t) * std::log(1 - p);
      const double hit = p * t + (1 - p) * (1 - t);
      const double balance = focus.alpha < 0 ? 1 : focus.alpha * t + (1 - focus.alpha) * (1 - t);
      sum += balance * entropy * std::pow(1 - hit, focus.gamma);
    }
    loss.push_back(sum / static_cast<double>(classes));
  }
  return {loss};
}

void check(const Focus& focus, int64_t samples, int64_t classes, Values weights = {}) {
  Values targets;
  for (int64_t i = 0; i < samples * classes; ++i) {
    targets.push_back(i % 3 == 0 ? 1 : i % 5 == 0 ? 0.25 : 0);
  }
  const auto count = static_cast<int64_t>(weights.size());
  check_op({.type = "sigmoid_focal_loss",
            .attributes = focus.attributes(),
            .inputs = {{.shape = {samples, classes}, .low = -4, .high = 4},
                       {.shape = {samples, classes},
                        .values = targets,
                        .dtype = DType::kFloat32,
                        .differentiate = false},
                       {.shape = {std::max<int64_t>(count, 1)},
                        .values = weights,
                        .dtype = DType::kFloat32,
                        .differentiate = false,
                        .present = count > 0}},
            .reference = [=](const std::vector<Values>& in) {
              return naive_focal_loss(in, focus, static_cast<size_t>(classes));
            }});
}

TEST(SigmoidFocalLoss, AlphaAndGamma_MatchReference) {
  check({.alpha = 0.25, .gamma = 2}, 3, 5);
  check({.gamma = 0.5}, 2, 4);
  check({.alpha = 0.75}, 2, 4);
}

TEST(SigmoidFocalLoss, ChangedTargetsAndWeights_MatchReference) {
  check({.scale = 0.9, .bias = 0.05}, 3, 4, {0.5, 2, 1, 3});
  check({.threshold = 0.2}, 3, 4, {2.5});
  check({.gamma = 2, .scale = 0.8, .bias = 0.1}, 3, 4, {1, 2, 3, 4});
}

// A long row is another kernel on GPUs.
TEST(SigmoidFocalLoss, ManyClasses_MatchReference) { check({.alpha = 0.25, .gamma = 2}, 1, 1030); }

TEST(SigmoidFocalLoss, LargeLogits_StayFinite) {
  check_op({.type = "sigmoid_focal_loss",
            .attributes = Focus{.alpha = 0.25, .gamma = 2}.attributes(),
            .inputs = {{.shape = {2, 2}, .values = {1000, -1000, 200, -200}},
                       {.shape = {2, 2},
                        .values = {1, 0, 0, 1},
                        .dtype = DType::kFloat32,
                        .differentiate = false}},
            .reference =
                [](const std::vector<Values>&) {
                  return std::vector<Values>{{0, (0.75 * 200 + 0.25 * 200) / 2}};
                },
            .check_gradient = false});
}

}  // namespace
}  // namespace fleet
