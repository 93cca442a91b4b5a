#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/engine/ops/op_check.h"

namespace fleet {
namespace {

std::vector<Values> naive_relu6(const std::vector<Values>& in) {
  Values y = in[0];
  for (double& x : y) x = std::clamp(x, 0.0, 6.0);
  return {y};
}

TEST(Relu6, Plain_MatchesReference) {
  check_op({.type = "relu6",
            .inputs = {{.shape = {3, 5, 7}, .low = -4, .high = 9}},
            .reference = naive_relu6,
            .step = 1e-6});
}

TEST(Relu6, SeveralThreads_MatchesReference) {
  check_op({.type = "relu6",
            .inputs = {{.shape = {4, 8191}, .low = -4, .high = 9}},
            .reference = naive_relu6,
            .check_gradient = false});
}

TEST(Relu6, BlockedLayoutWithPadding_MatchesReference) {
  const Layout blocked = Layout::blocked({2, 32, 3, 3}, {288, 144, 48, 16}, {{1, 16}});
  check_op({.type = "relu6",
            .inputs = {{.shape = {2, 20, 3, 3}, .kind = VarKind::kState, .layout = blocked}},
            .reference = naive_relu6,
            .step = 1e-6});
}

TEST(Relu6, OutsideItsRange_HasNoSlope) {
  check_op({.type = "relu6",
            .inputs = {{.shape = {6}, .values = {-1e30, -1, 1, 5, 7, 1e30}}},
            .reference = naive_relu6,
            .step = 1e-6});
}

}  // namespace
}  // namespace fleet
