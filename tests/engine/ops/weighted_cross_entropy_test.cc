#include <gtest/gtest.h>

#include <cmath>

#include "tests/engine/ops/op_check.h"
#include "tests/engine/ops/op_device.h"

namespace fleet {
namespace {

// Straight from the definition: -sum weight * target * log softmax; and the label's weight.
std::vector<Values> naive_weighted_cross_entropy(const std::vector<Values>& in, double smoothing,
                                                 int ignore = -100) {
  const size_t samples = in[1].size(), classes = in[0].size() / samples;
  Values loss(samples), weight(samples);
  for (size_t n = 0; n < samples; ++n) {
    const double* x = &in[0][n * classes];
    double largest = x[0], sum = 0;
    for (size_t c = 0; c < classes; ++c) largest = std::max(largest, x[c]);
    for (size_t c = 0; c < classes; ++c) sum += std::exp(x[c] - largest);
    const int label = static_cast<int>(in[1][n]);
    if (label == ignore) continue;
    weight[n] = in[2][label];
    for (size_t c = 0; c < classes; ++c) {
      const double target = smoothing / static_cast<double>(classes) +
                            (label == static_cast<int>(c) ? 1 - smoothing : 0);
      loss[n] -= in[2][c] * target * (x[c] - largest - std::log(sum));
    }
  }
  return {loss, weight};
}

CheckInput labels(const Shape& shape, Values values) {
  return {.shape = shape, .values = std::move(values), .dtype = DType::kInt64};
}

CheckInput weights(Values values) {
  return {.shape = {static_cast<int64_t>(values.size())},
          .values = std::move(values),
          .dtype = DType::kFloat32,
          .differentiate = false};
}

// Outputs, and the gradient of the loss.
std::vector<Values> check(const CheckInput& logits, const CheckInput& label,
                          const CheckInput& weight, double smoothing, int64_t ignore = -100) {
  OpCheck check{.type = "weighted_cross_entropy",
                .attributes = {{"label_smoothing", smoothing}, {"ignore_index", ignore}},
                .inputs = {logits, label, weight},
                .reference = [=](const std::vector<Values>& in) {
                  return std::vector<Values>{
                      naive_weighted_cross_entropy(in, smoothing, static_cast<int>(ignore))[0], {}};
                }};
  check_op(check);
  check.check_gradient = false;
  check.reference = [=](const std::vector<Values>& in) {
    return naive_weighted_cross_entropy(in, smoothing, static_cast<int>(ignore));
  };
  return check_op(check);
}

TEST(WeightedCrossEntropy, MatchesItsFormula) {
  for (const double smoothing : {0.0, 0.1}) {
    check({.shape = {4, 7}, .low = -3, .high = 3}, labels({4}, {0, 6, 3, 3}),
          weights({1, 2, 0.5, 3, 0, 1.5, 0.25}), smoothing);
  }
}

// torch.nn.CrossEntropyLoss(weight=w, label_smoothing=0.1, reduction="none") of PyTorch 2.x, and
// what its mean divides by.
TEST(WeightedCrossEntropy, IsPyTorchs) {
  const auto out = check({.shape = {3, 4},
                          .values = {0.5, -1, 2, 0.25, 1, 1, -2, 0, -0.5, 0.75, 0.125, 3},
                          .dtype = DType::kFloat32},
                         labels({3}, {2, 0, 3}), weights({1, 2, 0.5, 4}), 0.1);
  const Values loss = {0.5979153615, 1.09754807, 0.9011863578};
  for (size_t n = 0; n < loss.size(); ++n) EXPECT_NEAR(out[0][n], loss[n], 1e-5);
  EXPECT_NEAR(out[1][0] + out[1][1] + out[1][2], 5.5, 1e-6);
}

TEST(WeightedCrossEntropy, IgnoredSamplesAndClassesOfWeightNothing_HaveNoLoss) {
  const auto out = check({.shape = {3, 5}, .low = -3, .high = 3}, labels({3}, {-100, 2, 1}),
                         weights({1, 2, 0, 1, 1}), 0);
  EXPECT_EQ(out[0][0], 0);
  EXPECT_EQ(out[0][1], 0);
  EXPECT_EQ(out[1][0], 0);
  EXPECT_EQ(out[1][1], 0);
  check({.shape = {3, 5}, .low = -3, .high = 3}, labels({3}, {0, 2, 1}), weights({1, 2, 3, 1, 1}),
        0.2, 2);
}

TEST(WeightedCrossEntropy, LargeLogits_StayFinite) {
  check_op({.type = "weighted_cross_entropy",
            .inputs = {{.shape = {2, 3},
                        .values = {1e4, -1e4, 0, -88, -89, -87},
                        .dtype = DType::kFloat32},
                       labels({2}, {1, 2}),
                       weights({1, 2, 3})},
            .reference =
                [](const std::vector<Values>& in) { return naive_weighted_cross_entropy(in, 0); },
            .check_gradient = false});
}

TEST(WeightedCrossEntropy, ManyClasses_MatchesItsFormula) {
  Values many(2000);
  for (size_t c = 0; c < many.size(); ++c) many[c] = 0.25 + static_cast<double>(c % 7);
  check_op({.type = "weighted_cross_entropy",
            .attributes = {{"label_smoothing", 0.1}},
            .inputs = {{.shape = {12, 2000}, .low = -9, .high = 9},
                       labels({12}, Values(12, 1999)),
                       weights(many)},
            .reference =
                [](const std::vector<Values>& in) { return naive_weighted_cross_entropy(in, 0.1); },
            .check_gradient = false});
}

}  // namespace
}  // namespace fleet
