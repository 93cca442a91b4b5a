#include <gtest/gtest.h>

#include <cmath>

#include "tests/engine/ops/op_check.h"

namespace fleet {
namespace {

std::vector<Values> naive_binary_cross_entropy(const std::vector<Values>& in) {
  constexpr size_t kClasses = 3;
  Values loss;
  for (size_t n = 0; n < in[0].size() / kClasses; ++n) {
    double sum = 0;
    for (size_t i = n * kClasses; i < (n + 1) * kClasses; ++i) {
      const double p = 1 / (1 + std::exp(-in[0][i]));
      sum -= in[1][i] * std::log(p) + (1 - in[1][i]) * std::log(1 - p);
    }
    loss.push_back(sum / kClasses);
  }
  return {loss};
}

TEST(SigmoidCrossEntropy, LogitsAndTargets_MatchReference) {
  check_op({.type = "sigmoid_cross_entropy",
            .inputs = {{.shape = {2, 3}, .low = -3, .high = 3},
                       {.shape = {2, 3},
                        .values = {0, 1, 0.25, 1, 1, 0},
                        .dtype = DType::kFloat32,
                        .differentiate = false}},
            .reference = naive_binary_cross_entropy});
}

// torch.nn.functional.binary_cross_entropy_with_logits, reduction none, the mean of each row.
TEST(SigmoidCrossEntropy, LargeLogits_MatchTorch) {
  check_op({.type = "sigmoid_cross_entropy",
            .inputs = {{.shape = {2, 2}, .values = {1000, -1000, 200, 0.5}},
                       {.shape = {2, 2},
                        .values = {1, 0, 0, 1},
                        .dtype = DType::kFloat32,
                        .differentiate = false}},
            .reference =
                [](const std::vector<Values>&) {
                  return std::vector<Values>{{0, 100.23703848}};
                },
            .check_gradient = false});
}

}  // namespace
}  // namespace fleet
