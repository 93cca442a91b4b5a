#include <gtest/gtest.h>

#include <cmath>

#include "tests/engine/ops/op_check.h"

namespace fleet {
namespace {

std::vector<Values> naive_smooth_l1(const std::vector<Values>& in, double beta) {
  Values y = in[0];
  for (double& x : y) {
    x = std::abs(x) < beta ? x * x / (2 * beta) : std::abs(x) - beta / 2;
  }
  return {y};
}

TEST(SmoothL1, SmallAndLarge_MatchReference) {
  for (const double beta : {0.0, 0.5, 2.0}) {
    check_op({.type = "smooth_l1",
              .attributes = {{"beta", beta}},
              .inputs = {{.shape = {3, 5, 7}, .low = -3, .high = 3}},
              .reference = [=](const std::vector<Values>& in) { return naive_smooth_l1(in, beta); },
              .step = 1e-6});
  }
}

TEST(SmoothL1, AbsoluteValueAt0_HasNoSlope) {
  check_op({.type = "smooth_l1",
            .attributes = {{"beta", 0.0}},
            .inputs = {{.shape = {3}, .values = {0, 1, -2}}},
            .reference = [](const std::vector<Values>& in) { return naive_smooth_l1(in, 0); }});
}

}  // namespace
}  // namespace fleet
