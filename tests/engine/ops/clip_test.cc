#include <gtest/gtest.h>

#include <algorithm>

#include "tests/engine/ops/op_check.h"

namespace fleet {
namespace {

TEST(Clip, Bounds_MatchesReference) {
  for (const auto& [low, high] : {std::pair(-0.501, 0.499), std::pair(0.2, 0.7)}) {
    const double min = low, max = high;
    check_op({.type = "clip",
              .attributes = {{"min", min}, {"max", max}},
              .inputs = {{.shape = {5, 13}}},
              .reference =
                  [=](const std::vector<Values>& in) {
                    Values y = in[0];
                    for (double& x : y) x = std::clamp(x, min, max);
                    return std::vector<Values>{y};
                  },
              .step = 1e-6});
  }
}

}  // namespace
}  // namespace fleet
