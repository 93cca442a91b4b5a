#include <gtest/gtest.h>

#include <cmath>

#include "tests/engine/ops/op_check.h"

namespace fleet {
namespace {

std::vector<Values> naive_cross_entropy(const std::vector<Values>& in) {
  const size_t classes = in[0].size() / in[1].size();
  Values loss;
  for (size_t n = 0; n < in[1].size(); ++n) {
    const int label = static_cast<int>(in[1][n]);
    loss.push_back(label == -100 ? 0 : -std::log(in[0][n * classes + label]));
  }
  return {loss};
}

TEST(CrossEntropy, Probabilities_MatchesReference) {
  check_op({.type = "cross_entropy",
            .inputs = {{.shape = {4, 5}, .low = 0.05, .high = 1},
                       {.shape = {4}, .values = {0, 4, 2, -100}, .dtype = DType::kInt64}},
            .reference = naive_cross_entropy});
}

TEST(CrossEntropy, VanishedProbability_StaysFinite) {
  const auto loss = check_op({.type = "cross_entropy",
                              .inputs = {{.shape = {1, 2}, .values = {0, 1}},
                                         {.shape = {1}, .values = {0}, .dtype = DType::kInt64}},
                              .reference =
                                  [](const std::vector<Values>&) {
                                    return std::vector<Values>{{87.33654}};  // -log(2^-126)
                                  },
                              .check_gradient = false});
}

}  // namespace
}  // namespace fleet
