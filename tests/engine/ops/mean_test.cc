#include <gtest/gtest.h>

#include <numeric>

#include "tests/engine/ops/op_check.h"

namespace fleet {
namespace {

std::vector<Values> naive_mean(const std::vector<Values>& in) {
  const double sum = std::accumulate(in[0].begin(), in[0].end(), 0.0);
  return {{sum / static_cast<double>(in[0].size())}};
}

TEST(Mean, Plain_MatchesReference) {
  check_op({.type = "mean", .inputs = {{.shape = {4, 9}}}, .reference = naive_mean});
}

TEST(Mean, ManyElements_KeepsItsPrecision) {
  check_op({.type = "mean",
            .inputs = {{.shape = {300, 1000}, .low = 1, .high = 1.001}},
            .reference = naive_mean,
            .tolerance = 1e-7,
            .check_gradient = false});
}

TEST(Mean, BlockedLayoutWithPadding_CountsElementsOnly) {
  const Layout blocked = Layout::blocked({2, 32, 3, 3}, {288, 144, 48, 16}, {{1, 16}});
  check_op({.type = "mean",
            .inputs = {{.shape = {2, 20, 3, 3}, .kind = VarKind::kState, .layout = blocked}},
            .reference = naive_mean});
}

}  // namespace
}  // namespace fleet
