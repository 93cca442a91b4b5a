#include <gtest/gtest.h>

#include "ops/partial_squares.h"
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

TEST(PartialSquares, LastPartIsShort_MatchesReference) {
  check_op({.type = "partial_squares",
            .inputs = {{.shape = {2 * kSquaresPart + 3}}},
            .reference =
                [](const std::vector<Values>& in) {
                  std::vector<Values> parts = {Values(3)};
                  for (size_t i = 0; i < in[0].size(); ++i) {
                    parts[0][i / kSquaresPart] += in[0][i] * in[0][i];
                  }
                  return parts;
                },
            .tolerance = 1e-6,
            .check_gradient = false});
}

TEST(SumPartials, Doubles_AreAddedUp) {
  check_op({.type = "sum_partials",
            .dtype = DType::kFloat64,
            .inputs = {{.shape = {5}, .values = {1e15, 3, -1e15, 2, 0.5}}},
            .reference = [](const std::vector<Values>&) -> std::vector<Values> { return {{5.5}}; },
            .tolerance = 1e-6,
            .check_gradient = false});
}

}  // namespace
}  // namespace fleet
