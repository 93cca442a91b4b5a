#include <gtest/gtest.h>

#include "tests/engine/ops/op_check.h"

namespace fleet {
namespace {

std::vector<Values> naive_sum_of_squares(const std::vector<Values>& in) {
  double sum = 0;
  for (const Values& x : in) {
    for (double value : x) sum += value * value;
  }
  return {{sum}};
}

TEST(SumOfSquares, SeveralInputs_MatchesReference) {
  const Layout blocked = Layout::blocked({2, 32, 3, 3}, {288, 144, 48, 16}, {{1, 16}});
  check_op({.type = "sum_of_squares",
            .inputs = {{.shape = {3, 7}},
                       {.shape = {2, 20, 3, 3}, .kind = VarKind::kState, .layout = blocked},
                       {.shape = {200000}}},
            .reference = naive_sum_of_squares,
            .tolerance = 1e-6,
            .check_gradient = false});
}

}  // namespace
}  // namespace fleet
