#include <gtest/gtest.h>

#include "tests/engine/ops/op_check.h"

namespace fleet {
namespace {

std::vector<Values> naive_sum(const std::vector<Values>& in) {
  Values sum(in[0].size());
  for (const Values& x : in) {
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += x[i];
  }
  return {sum};
}

TEST(Sum, AnyNumberOfInputs_MatchesReference) {
  for (int count = 1; count <= 4; ++count) {
    check_op({.type = "sum",
              .inputs = std::vector<CheckInput>(count, CheckInput{.shape = {3, 7}}),
              .reference = naive_sum});
  }
}

TEST(Sum, MoreThanABlock_MatchesReference) {
  check_op({.type = "sum",
            .inputs = std::vector<CheckInput>(3, CheckInput{.shape = {5, 20001}}),
            .reference = naive_sum,
            .check_gradient = false});
}

TEST(Sum, DifferentLayouts_MatchesReference) {
  const Layout blocked = Layout::blocked({2, 32, 3, 3}, {288, 144, 48, 16}, {{1, 16}});
  check_op({.type = "sum",
            .inputs = {{.shape = {2, 20, 3, 3}, .kind = VarKind::kState, .layout = blocked},
                       {.shape = {2, 20, 3, 3}}},
            .reference = naive_sum});
}

}  // namespace
}  // namespace fleet
