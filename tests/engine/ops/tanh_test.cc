#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/engine/ops/op_check.h"

namespace fleet {
namespace {

std::vector<Values> naive_tanh(const std::vector<Values>& in) {
  Values y = in[0];
  for (double& x : y) x = std::tanh(x);
  return {y};
}

TEST(Tanh, Plain_MatchesReference) {
  check_op({.type = "tanh",
            .inputs = {{.shape = {3, 5, 7}, .low = -4, .high = 4}},
            .reference = naive_tanh});
}

TEST(Tanh, SeveralThreads_MatchesReference) {
  check_op({.type = "tanh",
            .inputs = {{.shape = {4, 8191}, .low = -4, .high = 4}},
            .reference = naive_tanh,
            .check_gradient = false});
}

TEST(Tanh, BlockedLayoutWithPadding_MatchesReference) {
  const Layout blocked = Layout::blocked({2, 32, 3, 3}, {288, 144, 48, 16}, {{1, 16}});
  check_op({.type = "tanh",
            .inputs = {{.shape = {2, 20, 3, 3}, .kind = VarKind::kState, .layout = blocked}},
            .reference = naive_tanh});
}

TEST(Tanh, SmallInputs_KeepTheirPrecision) {
  check_op({.type = "tanh",
            .inputs = {{.shape = {4}, .values = {1e-5, -3e-4, 2e-3, 1e-6}}},
            .reference = naive_tanh,
            .tolerance = 1e-9 / 1e-3});
}

TEST(Tanh, LargeInputs_Saturate) {
  const auto y = check_op({.type = "tanh",
                           .inputs = {{.shape = {4}, .values = {-1e4, -20, 20, 1e4}}},
                           .reference = naive_tanh});
  EXPECT_EQ(y[0], (Values{-1, -1, 1, 1}));
}

}  // namespace
}  // namespace fleet
