#include <gtest/gtest.h>

#include "tests/engine/ops/op_check.h"

namespace fleet {
namespace {

std::vector<Values> naive_scale(const std::vector<Values>& in, double scale, double bias) {
  Values y = in[0];
  for (double& x : y) x = x * scale + bias;
  return {y};
}

TEST(Scale, ScaleAndBias_MatchesReference) {
  check_op(
      {.type = "scale",
       .attributes = {{"scale", -2.5}, {"bias", 0.75}},
       .inputs = {{.shape = {3, 11}}},
       .reference = [](const std::vector<Values>& in) { return naive_scale(in, -2.5, 0.75); }});
}

// With a bias the padding would not stay zero; without, the blocks are scaled as they lie.
TEST(Scale, BlockedLayoutWithPadding_MatchesReference) {
  const Layout blocked = Layout::blocked({2, 32, 3, 3}, {288, 144, 48, 16}, {{1, 16}});
  for (const double bias : {0.0, 1.0}) {
    check_op(
        {.type = "scale",
         .attributes = {{"scale", 3.0}, {"bias", bias}},
         .inputs = {{.shape = {2, 20, 3, 3}, .kind = VarKind::kState, .layout = blocked}},
         .reference = [=](const std::vector<Values>& in) { return naive_scale(in, 3, bias); }});
  }
}

}  // namespace
}  // namespace fleet
