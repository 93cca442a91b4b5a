#include <gtest/gtest.h>

#include <cmath>

#include "tests/engine/ops/op_check.h"
#include "tests/engine/ops/op_device.h"

namespace fleet {
namespace {

// Straight from the definition: -sum target * log softmax.
std::vector<Values> naive_softmax_with_cross_entropy(const std::vector<Values>& in,
                                                     double smoothing, int ignore = -100) {
  const size_t samples = in[1].size(), classes = in[0].size() / samples;
  Values loss(samples), softmax(in[0].size());
  for (size_t n = 0; n < samples; ++n) {
    const double* x = &in[0][n * classes];
    double largest = x[0], sum = 0;
    for (size_t c = 0; c < classes; ++c) largest = std::max(largest, x[c]);
    for (size_t c = 0; c < classes; ++c) sum += std::exp(x[c] - largest);
    const int label = static_cast<int>(in[1][n]);
    for (size_t c = 0; c < classes; ++c) {
      softmax[n * classes + c] = std::exp(x[c] - largest) / sum;
      const double target = smoothing / static_cast<double>(classes) +
                            (label == static_cast<int>(c) ? 1 - smoothing : 0);
      if (label != ignore) loss[n] -= target * (x[c] - largest - std::log(sum));
    }
  }
  return {loss, softmax};
}

// The softmax is compared by a check without gradients: it is not differentiable.
std::vector<Values> loss_only(const std::vector<Values>& in, double smoothing, int ignore = -100) {
  return {naive_softmax_with_cross_entropy(in, smoothing, ignore)[0]};
}

CheckInput labels(const Shape& shape, Values values) {
  return {.shape = shape, .values = std::move(values), .dtype = DType::kInt64};
}

TEST(SoftmaxWithCrossEntropy, Labels_MatchesReference) {
  check_op({.type = "softmax_with_cross_entropy",
            .inputs = {{.shape = {4, 7}, .low = -3, .high = 3}, labels({4}, {0, 6, 3, 3})},
            .reference = [](const std::vector<Values>& in) { return loss_only(in, 0); },
            .optional_outputs = false});
}

TEST(SoftmaxWithCrossEntropy, SoftmaxAskedFor_MatchesReference) {
  check_op(
      {.type = "softmax_with_cross_entropy",
       .inputs = {{.shape = {4, 7}, .low = -3, .high = 3}, labels({4}, {0, 6, 3, 3})},
       .reference =
           [](const std::vector<Values>& in) { return naive_softmax_with_cross_entropy(in, 0); },
       .check_gradient = false});
}

TEST(SoftmaxWithCrossEntropy, SequencesAndColumnOfLabels_MatchesReference) {
  check_op({.type = "softmax_with_cross_entropy",
            .inputs = {{.shape = {2, 2, 7}}, labels({2, 2, 1}, {0, 6, 3, 3})},
            .reference = [](const std::vector<Values>& in) { return loss_only(in, 0); }});
}

TEST(SoftmaxWithCrossEntropy, LabelSmoothing_MatchesItsFormula) {
  check_op({.type = "softmax_with_cross_entropy",
            .attributes = {{"label_smoothing", 0.1}},
            .inputs = {{.shape = {3, 10}, .low = -3, .high = 3}, labels({3}, {1, 9, 0})},
            .reference = [](const std::vector<Values>& in) { return loss_only(in, 0.1); }});
}

TEST(SoftmaxWithCrossEntropy, IgnoredSamples_HaveNoLossAndNoGradient) {
  for (const double smoothing : {0.0, 0.2}) {
    const auto loss = check_op(
        {.type = "softmax_with_cross_entropy",
         .attributes = {{"label_smoothing", smoothing}},
         .inputs = {{.shape = {3, 5}, .low = -3, .high = 3}, labels({3}, {-100, 2, -100})},
         .reference = [=](const std::vector<Values>& in) { return loss_only(in, smoothing); }});
    EXPECT_EQ(loss[0][0], 0);
    EXPECT_EQ(loss[0][2], 0);
  }
  check_op({.type = "softmax_with_cross_entropy",
            .attributes = {{"ignore_index", int64_t{2}}},
            .inputs = {{.shape = {3, 5}}, labels({3}, {0, 2, 4})},
            .reference = [](const std::vector<Values>& in) { return loss_only(in, 0, 2); }});
}

TEST(SoftmaxWithCrossEntropy, LargeLogits_StayFinite) {
  check_op({.type = "softmax_with_cross_entropy",
            .inputs = {{.shape = {3, 3},
                        .values = {1e4, -1e4, 0, 3e38, -3e38, 0, -88, -89, -87},
                        .dtype = DType::kFloat32},
                       labels({3}, {1, 0, 2})},
            .reference = [](const std::vector<Values>& in) { return loss_only(in, 0); },
            .check_gradient = false});
}

TEST(SoftmaxWithCrossEntropy, ManyClasses_MatchesReference) {
  check_op(
      {.type = "softmax_with_cross_entropy",
       .attributes = {{"label_smoothing", 0.1}},
       .inputs = {{.shape = {40, 1000}, .low = -9, .high = 9}, labels({40}, Values(40, 999))},
       .reference =
           [](const std::vector<Values>& in) { return naive_softmax_with_cross_entropy(in, 0.1); },
       .check_gradient = false});
}

OpCheck label_out_of_range() {
  return {.type = "softmax_with_cross_entropy",
          .inputs = {{.shape = {2, 5}}, labels({2}, {0, 5})},
          .reference = [](const std::vector<Values>&) { return std::vector<Values>{{}}; },
          .check_gradient = false};
}

TEST(SoftmaxWithCrossEntropy, LabelOutOfRange_IsRefusedByName) {
  if (op_device().backend() == "cuda") GTEST_SKIP() << "a GPU cannot stop the step";
  try {
    check_op(label_out_of_range());
    FAIL() << "was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    EXPECT_NE(std::string(error.what()).find("label 5 of sample 1"), std::string::npos)
        << error.what();
  }
}

TEST(SoftmaxWithCrossEntropy, LabelOutOfRangeOnAGpu_MakesTheLossUndefined) {
  if (op_device().backend() != "cuda") GTEST_SKIP() << "the CPU refuses it";
  const Values loss = check_op(label_out_of_range())[0];
  EXPECT_TRUE(std::isfinite(loss[0]));
  EXPECT_TRUE(std::isnan(loss[1]));
}

}  // namespace
}  // namespace fleet
