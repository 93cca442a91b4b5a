#include <gtest/gtest.h>

#include <cmath>

#include "tests/engine/ops/op_check.h"

namespace fleet {
namespace {

std::vector<Values> naive_exp(const std::vector<Values>& in) {
  Values y = in[0];
  for (double& x : y) x = std::exp(x);
  return {y};
}

TEST(Exp, SmallAndLarge_MatchReference) {
  check_op({.type = "exp",
            .inputs = {{.shape = {3, 5, 7}, .low = -4, .high = 4}},
            .reference = naive_exp});
  check_op({.type = "exp",
            .inputs = {{.shape = {4}, .values = {-90, -1, 0, 11}}},
            .reference = naive_exp,
            .check_gradient = false});
}

TEST(Exp, SeveralThreads_MatchReference) {
  check_op({.type = "exp",
            .inputs = {{.shape = {4, 8191}, .low = -4, .high = 4}},
            .reference = naive_exp,
            .check_gradient = false});
}

}  // namespace
}  // namespace fleet
