#include <gtest/gtest.h>

#include <algorithm>

#include "tests/engine/ops/op_check.h"

namespace fleet {
namespace {

std::vector<Values> naive_relu(const std::vector<Values>& in) {
  Values y = in[0];
  for (double& value : y) value = std::max(value, 0.0);
  return {y};
}

TEST(Relu, Plain_MatchesReference) {
  check_op({.type = "relu", .inputs = {{.shape = {3, 5, 7}}}, .reference = naive_relu});
}

TEST(Relu, BlockedLayoutWithPadding_MatchesReference) {
  const Layout blocked = Layout::blocked({2, 32, 3, 3}, {288, 144, 48, 16}, {{1, 16}});
  check_op({.type = "relu",
            .inputs = {{.shape = {2, 20, 3, 3}, .kind = VarKind::kState, .layout = blocked}},
            .reference = naive_relu,
            .seed = 2});  // no input within a step of the kink
}

}  // namespace
}  // namespace fleet
