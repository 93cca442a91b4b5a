#include <gtest/gtest.h>

#include "tests/engine/ops/op_check.h"

namespace fleet {
namespace {

std::vector<Values> naive_sum_relu_grad(const std::vector<Values>& in) {
  Values dx(in[0].size(), 0);
  for (size_t i = 0; i < dx.size(); ++i) {
    for (size_t k = 1; k < in.size(); ++k) dx[i] += in[0][i] > 0 ? in[k][i] : 0;
  }
  return {dx};
}

void check_sum_relu_grad(int contributions, const Shape& shape, std::optional<Layout> layout = {}) {
  const VarKind kind = layout ? VarKind::kState : VarKind::kFeed;
  const std::vector<CheckInput> inputs(contributions + 1,
                                       {.shape = shape, .kind = kind, .layout = layout});
  check_op({.type = "sum_relu_grad",
            .inputs = inputs,
            .reference = naive_sum_relu_grad,
            .check_gradient = false});
}

TEST(SumReluGrad, Contributions_AreAddedWhereTheOutputWasPositive) {
  for (int contributions : {1, 2, 3, 5}) check_sum_relu_grad(contributions, {3, 5, 7});
}

TEST(SumReluGrad, ManyBlocks_AreAllComputed) { check_sum_relu_grad(3, {3, 5000}); }

TEST(SumReluGrad, BlockedLayoutWithPadding_MatchesReference) {
  check_sum_relu_grad(2, {2, 20, 3, 3},
                      Layout::blocked({2, 32, 3, 3}, {288, 144, 48, 16}, {{1, 16}}));
}

}  // namespace
}  // namespace fleet
