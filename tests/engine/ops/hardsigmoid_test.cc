#include <gtest/gtest.h>

#include <algorithm>

#include "tests/engine/ops/activation_check.h"

namespace fleet {
namespace {

TEST(Hardsigmoid, MatchesReference) {
  check_activation("hardsigmoid", [](double x) { return std::clamp(x + 3, 0.0, 6.0) / 6; });
}

}  // namespace
}  // namespace fleet
