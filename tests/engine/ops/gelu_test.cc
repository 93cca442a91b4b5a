#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/engine/ops/op_check.h"

namespace fleet {
namespace {

std::vector<Values> naive_gelu(const std::vector<Values>& in) {
  Values y = in[0];
  for (double& x : y) x = x / 2 * std::erfc(-x / std::sqrt(2.0));
  return {y};
}

TEST(Gelu, Plain_MatchesReference) {
  check_op({.type = "gelu",
            .inputs = {{.shape = {3, 5, 7}, .low = -5, .high = 5}},
            .reference = naive_gelu});
}

TEST(Gelu, SeveralThreads_MatchesReference) {
  check_op({.type = "gelu",
            .inputs = {{.shape = {4, 8191}, .low = -5, .high = 5}},
            .reference = naive_gelu,
            .check_gradient = false});
}

TEST(Gelu, BlockedLayoutWithPadding_MatchesReference) {
  const Layout blocked = Layout::blocked({2, 32, 3, 3}, {288, 144, 48, 16}, {{1, 16}});
  check_op({.type = "gelu",
            .inputs = {{.shape = {2, 20, 3, 3}, .kind = VarKind::kState, .layout = blocked}},
            .reference = naive_gelu});
}

std::vector<Values> naive_tanh_form(const std::vector<Values>& in) {
  Values y = in[0];
  for (double& x : y) {
    x = x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
  }
  return {y};
}

TEST(Gelu, Approximate_MatchesTanhForm) {
  check_op({.type = "gelu",
            .attributes = {{"approximate", true}},
            .inputs = {{.shape = {4, 100}, .low = -5, .high = 5}},
            .reference = naive_tanh_form});
}

TEST(Gelu, LargeInputs_AreTheIdentityOrZero) {
  const auto y = check_op(
      {.type = "gelu", .inputs = {{.shape = {2}, .values = {-100, 100}}}, .reference = naive_gelu});
  EXPECT_EQ(y[0][1], 100);
}

}  // namespace
}  // namespace fleet
