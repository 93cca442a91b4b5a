#include <gtest/gtest.h>

#include <cmath>

#include "tests/engine/ops/op_check.h"

namespace fleet {
namespace {

// Softmax of x seen as [outer, classes, inner].
std::vector<Values> naive_softmax(const Values& x, int64_t classes, int64_t inner) {
  Values y(x.size());
  const int64_t outer = static_cast<int64_t>(x.size()) / (classes * inner);
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < inner; ++i) {
      const auto at = [&](int64_t c) { return (o * classes + c) * inner + i; };
      double largest = x[at(0)], sum = 0;
      for (int64_t c = 0; c < classes; ++c) largest = std::max(largest, x[at(c)]);
      for (int64_t c = 0; c < classes; ++c) sum += std::exp(x[at(c)] - largest);
      for (int64_t c = 0; c < classes; ++c) y[at(c)] = std::exp(x[at(c)] - largest) / sum;
    }
  }
  return {y};
}

TEST(Softmax, LastAxis_MatchesReference) {
  check_op(
      {.type = "softmax",
       .inputs = {{.shape = {3, 4, 17}, .low = -3, .high = 3}},
       .reference = [](const std::vector<Values>& in) { return naive_softmax(in[0], 17, 1); }});
}

TEST(Softmax, InnerAxis_MatchesReference) {
  check_op(
      {.type = "softmax",
       .attributes = {{"axis", int64_t{1}}},
       .inputs = {{.shape = {2, 5, 70}, .low = -3, .high = 3}},
       .reference = [](const std::vector<Values>& in) { return naive_softmax(in[0], 5, 70); }});
}

TEST(Softmax, ManyRows_MatchesReference) {
  check_op(
      {.type = "softmax",
       .inputs = {{.shape = {50, 1000}, .low = -9, .high = 9}},
       .reference = [](const std::vector<Values>& in) { return naive_softmax(in[0], 1000, 1); },
       .check_gradient = false});
}

TEST(Softmax, LargeLogits_StayFinite) {
  check_op({.type = "softmax",
            .inputs = {{.shape = {2, 3},
                        .values = {1e4, 1e4 - 1, -1e4, -3e38, -3e38, 3e38},
                        .dtype = DType::kFloat32}},
            .reference = [](const std::vector<Values>& in) { return naive_softmax(in[0], 3, 1); },
            .check_gradient = false});
}

// Attention masks its scores by minus infinity.
TEST(Softmax, MaskedLogit_GetsNoProbability) {
  const auto y = check_op({.type = "softmax",
                           .inputs = {{.shape = {1, 3}, .values = {1, -INFINITY, 1}}},
                           .reference =
                               [](const std::vector<Values>&) {
                                 return std::vector<Values>{{0.5, 0, 0.5}};
                               },
                           .check_gradient = false});
  EXPECT_EQ(y[0][1], 0);
}

}  // namespace
}  // namespace fleet
