#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/engine/ops/op_check.h"

namespace fleet {
namespace {

std::vector<Values> naive_sigmoid(const std::vector<Values>& in) {
  Values y = in[0];
  for (double& x : y) x = 1 / (1 + std::exp(-x));
  return {y};
}

TEST(Sigmoid, Plain_MatchesReference) {
  check_op({.type = "sigmoid",
            .inputs = {{.shape = {3, 5, 7}, .low = -6, .high = 6}},
            .reference = naive_sigmoid});
}

TEST(Sigmoid, SeveralThreads_MatchesReference) {
  check_op({.type = "sigmoid",
            .inputs = {{.shape = {4, 8191}, .low = -6, .high = 6}},
            .reference = naive_sigmoid,
            .check_gradient = false});
}

TEST(Sigmoid, BlockedLayoutWithPadding_MatchesReference) {
  const Layout blocked = Layout::blocked({2, 32, 3, 3}, {288, 144, 48, 16}, {{1, 16}});
  check_op({.type = "sigmoid",
            .inputs = {{.shape = {2, 20, 3, 3}, .kind = VarKind::kState, .layout = blocked}},
            .reference = naive_sigmoid});
}

TEST(Sigmoid, LargeInputs_Saturate) {
  const auto y = check_op({.type = "sigmoid",
                           .inputs = {{.shape = {4}, .values = {-1e4, -100, 100, 1e4}}},
                           .reference = naive_sigmoid});
  EXPECT_EQ(y[0][3], 1);
}

}  // namespace
}  // namespace fleet
