#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/ops/op_check.h"

namespace fleet {
namespace {

std::vector<Values> naive(const std::vector<Values>& in) {
  Values y = in[0];
  for (double& x : y) x /= 1 + std::exp(-x);
  return {y};
}

TEST(Silu, Plain_MatchesReference) {
  check_op({.type = "silu",
            .inputs = {{.shape = {3, 5, 7}, .low = -5.7, .high = 6.1}},
            .reference = naive,
            .step = 1e-6});
}

TEST(Silu, SeveralThreads_MatchesReference) {
  check_op({.type = "silu",
            .inputs = {{.shape = {4, 8191}, .low = -5.7, .high = 6.1}},
            .reference = naive,
            .check_gradient = false});
}

TEST(Silu, BlockedLayoutWithPadding_MatchesReference) {
  const Layout blocked = Layout::blocked({2, 32, 3, 3}, {288, 144, 48, 16}, {{1, 16}});
  check_op({.type = "silu",
            .inputs = {{.shape = {2, 20, 3, 3}, .kind = VarKind::kState, .layout = blocked}},
            .reference = naive,
            .step = 1e-6});
}

TEST(Silu, FarFromZero_MatchesReference) {
  check_op({.type = "silu",
            .inputs = {{.shape = {6}, .values = {-80, -4, -1, 1, 4, 1e4}}},
            .reference = naive,
            .step = 1e-6,
            .check_gradient = false});
}

}  // namespace
}  // namespace fleet
